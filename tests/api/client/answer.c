/* The C interface as a whole program: answers a prompt, as `redline run MODEL --raw --temp 0 -p PROMPT -n COUNT` does.
 * usage: answer MODEL PROMPT COUNT */
#include <redline.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(void) {
    fprintf(stderr, "answer: %s\n", redline_error());
    return 1;
}

static int answer(const redline_model *model, redline_session *session, redline_sampler *sampler, const char *prompt,
                  long count) {
    int32_t tokens[4096], last;
    int64_t read = redline_tokenize(model, prompt, strlen(prompt), REDLINE_ADD_SPECIAL, tokens, 4096);
    if (read < 0 || read > 4096 || redline_feed(session, tokens, (size_t)read) < 0) return fail();
    last = read > 0 ? tokens[read - 1] : -1;
    for (; count > 0; --count) {
        char piece[256];
        int64_t bytes;
        int32_t token = redline_sample(sampler, session);
        if (token < 0) return fail();
        if (redline_is_end(model, token)) break;
        bytes = redline_piece_after(model, last, token, 0, piece, sizeof piece);
        if (bytes < 0) return fail();
        fwrite(piece, 1, (size_t)bytes < sizeof piece ? (size_t)bytes : sizeof piece, stdout);
        if (redline_feed(session, &token, 1) < 0) return fail();
        last = token;
    }
    return 0;
}

int main(int argc, char **argv) {
    redline_model_options options = REDLINE_MODEL_OPTIONS;
    redline_sampler_options choice = REDLINE_SAMPLER_OPTIONS;
    redline_model *model;
    redline_session *session;
    redline_sampler *sampler;
    int code;
    if (argc != 4) {
        fprintf(stderr, "usage: answer MODEL PROMPT COUNT\n");
        return 2;
    }
    if (redline_abi_version() != REDLINE_ABI_VERSION) {
        fprintf(stderr, "answer: this library is not the one that it was compiled for\n");
        return 1;
    }
    options.device = "cpu";
    choice.temperature = 0;
    model = redline_model_load(argv[1], &options);
    session = model ? redline_session_new(model) : NULL;
    sampler = session ? redline_sampler_new(session, &choice) : NULL;
    code = sampler ? answer(model, session, sampler, argv[2], strtol(argv[3], NULL, 10)) : fail();
    redline_sampler_free(sampler);
    redline_session_free(session);
    redline_model_free(model);
    return code;
}
