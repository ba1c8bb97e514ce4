/* A chat: each line of standard input is a message of the user; answers are written while they are made.
 * What the library has to say of the model, such as how it is split between a GPU and the CPU, goes to standard error.
 * usage: chat MODEL.gguf [DEVICE [TEMPERATURE [LAYERS_ON_THE_GPU]]] */
#include <redline.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 256, TEXT = 1 << 20 };

static redline_message messages[MESSAGES];
static char text[TEXT];    /* what they say, each up to a zero */
static size_t count, used; /* messages, bytes of text */

static int fail(const char *what) {
    fprintf(stderr, "chat: %s\n", what);
    return -1;
}

/* The plan, notes and details; a text is one line. */
static void tell(void *user, int kind, const char *line) {
    FILE *out = user;
    if (kind != REDLINE_DETAIL) fprintf(out, "%s%s\n", kind == REDLINE_NOTE ? "note: " : "", line);
}

/* Reads the conversation, but for what the session has read already: the first tokens of `seen`. */
static int read_conversation(const redline_model *model, redline_session *session, int32_t *seen) {
    const int64_t length = redline_chat(model, messages, count, NULL, 0);
    if (length <= 0) return fail(length < 0 ? redline_error() : "the template writes nothing");
    if ((uint64_t)length > redline_model_context(model)) return fail("the conversation is longer than the context");
    int32_t *tokens = malloc((size_t)length * sizeof *tokens);
    if (!tokens) return fail("out of memory");
    redline_chat(model, messages, count, tokens, (size_t)length);
    uint64_t same = 0;
    while (same < redline_position(session) && same < (uint64_t)length - 1 && seen[same] == tokens[same]) ++same;
    same = redline_rewind(session, same);
    const int code = redline_feed(session, tokens + same, (size_t)length - same);
    memcpy(seen, tokens, (size_t)length * sizeof *tokens);
    free(tokens);
    return code < 0 ? fail(redline_error()) : 0;
}

static int write_answer(const redline_model *model, redline_session *session, redline_sampler *sampler, int32_t *seen) {
    int32_t token;
    while ((token = redline_sample(sampler, session)) >= 0 && !redline_is_end(model, token)) {
        const uint64_t position = redline_position(session);
        const size_t room = TEXT - used - 1;
        const int64_t bytes = redline_piece_after(model, seen[position - 1], token, 0, text + used, room);
        if (bytes < 0 || (uint64_t)bytes > room) return fail(bytes < 0 ? redline_error() : "no room for more text");
        fwrite(text + used, 1, (size_t)bytes, stdout);
        fflush(stdout);
        used += (size_t)bytes;
        if (redline_feed(session, &token, 1) < 0) return fail(redline_error()); /* the context may be full */
        seen[position] = token;
    }
    text[used++] = 0;
    putchar('\n');
    return token < 0 ? fail(redline_error()) : 0;
}

int main(int argc, char **argv) {
    redline_model_options options = REDLINE_MODEL_OPTIONS;
    redline_sampler_options choice = REDLINE_SAMPLER_OPTIONS;
    if (argc > 2) options.device = argv[2];
    if (argc > 3) choice.temperature = strtof(argv[3], NULL);
    if (argc > 4) options.gpu_layers = (int32_t)strtol(argv[4], NULL, 10); /* without: as many as fit */
    options.note = tell;
    options.user = stderr;
    redline_model *model = redline_model_load(argc > 1 ? argv[1] : NULL, &options);
    redline_session *session = model ? redline_session_new(model) : NULL;
    redline_sampler *sampler = session ? redline_sampler_new(session, &choice) : NULL;
    int32_t *seen = sampler ? malloc(redline_model_context(model) * sizeof *seen) : NULL;
    int code = seen ? 0 : fail(sampler ? "out of memory" : redline_error());
    while (code == 0 && count + 2 <= MESSAGES && TEXT - used > 2 && fgets(text + used, (int)(TEXT - used - 1), stdin)) {
        text[used + strcspn(text + used, "\n")] = 0;
        messages[count++] = (redline_message){"user", text + used};
        used += strlen(text + used) + 1;
        code = read_conversation(model, session, seen);
        messages[count++] = (redline_message){"assistant", text + used};
        if (code == 0) code = write_answer(model, session, sampler, seen);
    }
    if (code == 0 && !feof(stdin)) code = fail("the conversation is too long");
    free(seen);
    redline_sampler_free(sampler);
    redline_session_free(session);
    redline_model_free(model);
    return code == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
