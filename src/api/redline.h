/* redline's C interface: load a model, turn text into tokens, feed them, choose the next ones, free what was
 * made.
 *
 * Errors. A function that can fail says so by what it returns (NULL, or a negative number), and
 * redline_error() then has one sentence that says what was wrong and what would work. Nothing is printed, no
 * C++ exception comes out, and the environment is not read.
 *
 * Lifetimes. Handles are opaque; each is freed by the function of its kind, which takes NULL too, in any
 * order: a session keeps what it needs of its model. Pointers that are given out belong to their handle.
 *
 * Threads. Different sessions and samplers may be used by different threads; one of them by one thread at a
 * time, but for redline_cancel(). A model may be read (tokens, text) by several.
 *
 * Options are structs that begin with their size, so that later versions can add members at the end: begin
 * with the macro of the same name in capitals, then set what you want to be different. NULL in place of
 * options means all defaults.
 *
 *     redline_model *model = redline_model_load("model.gguf", NULL);
 *     redline_session *session = redline_session_new(model);
 *     redline_sampler *sampler = redline_sampler_new(session, NULL);
 *     int32_t tokens[512];
 *     int64_t count = redline_tokenize(model, text, strlen(text), REDLINE_ADD_SPECIAL, tokens, 512);
 *     redline_feed(session, tokens, count);
 *     int32_t token;
 *     while ((token = redline_sample(sampler, session)) >= 0 && !redline_is_end(model, token)) {
 *         fwrite(piece, 1, redline_piece(model, token, 0, piece, sizeof piece), stdout);
 *         redline_feed(session, &token, 1);
 *     }
 *
 * tests/api/client/answer.c is that as a whole program, and examples/chat.c a conversation of several turns.
 * Compile with `pkg-config --cflags --libs redline`, or in CMake with find_package(redline) and the target
 * redline::redline. */
#ifndef REDLINE_H
#define REDLINE_H

#include <stddef.h>
#include <stdint.h>

/* Rises when a program that was compiled for an earlier one no longer works with the library; the number in
 * its file's name, libredline.so.2, is the same. */
#define REDLINE_ABI_VERSION 2

#if defined(__GNUC__)
#define REDLINE_API __attribute__((visibility("default")))
#else
#define REDLINE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct redline_model redline_model;
typedef struct redline_session redline_session;
typedef struct redline_sampler redline_sampler;

/* REDLINE_ABI_VERSION of the library that runs. */
REDLINE_API int redline_abi_version(void);
/* "0.1.0" */
REDLINE_API const char* redline_version(void);
/* Why the last call of this thread that failed did so; "" before any. Valid until this thread's next failure.
 */
REDLINE_API const char* redline_error(void);

/* ---- models ---- */

/* What the functions of redline_model_options are told: something that the caller did not ask for or may not
 * expect; a step that went as it should, such as the plan of what runs where; details. */
#define REDLINE_NOTE 0
#define REDLINE_INFORM 1
#define REDLINE_DETAIL 2

/* In place of a number of tokens: as many as fit into the memory, up to what the model was trained for. */
#define REDLINE_LARGEST UINT64_MAX
/* In place of a number of layers, see cpu_experts. */
#define REDLINE_AS_NEEDED (-2)

typedef struct redline_model_options {
    size_t size; /* of this struct */
    /* "cpu", "gpu", "vulkan", "hip:1", or part of a device's name; several with commas between,
     * "hip:0,hip:1", share the layers; NULL: the best */
    const char* device;
    /* Where findings about devices are kept between runs: compiled kernels, verdicts on kernels, tuned
     * variants, measured rates. The program `redline` shares its findings in ~/.cache/redline. The first time
     * that a model of 1 GiB or more is loaded on a device its rates are measured, which takes some seconds.
     * NULL: nowhere, and nothing is measured for it. */
    const char* cache_folder;
    /* Of keys and values: "f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0" or "iq4_nl"; NULL:
     * f16. For types that differ see cache_type_k. */
    const char* cache_type;
    /* Most tokens of a session, or REDLINE_LARGEST. 0: 4096, or fewer if the model was trained for fewer. */
    uint64_t context;
    uint32_t threads; /* of the CPU; 0: one per physical core */
    uint32_t batch;   /* tokens read at a time; 0: what suits the device */
    /* Whether each kernel that the model uses on a GPU is compared with the reference before the first use:
     * 0: unless that was done; verdicts are kept in `cache_folder` until the driver or the library changes;
     * with NULL they are kept as long as the process lives. Drivers that compute on the CPU are left out. 1:
     * now, on any GPU. -1: never. A kernel that is wrong gives way to a slower one; a device that none is
     * left for is an error, or, if it was not asked for, is passed over, which is noted. */
    int32_t kernel_check;

    /* A model that is larger than the GPU's memory is split: layers, or the experts of layers, run on the
     * CPU. -1 in the next two leaves to the library how many. */
    /* Layers on the GPU, the last ones of the model; 0: all on the CPU; -1: as many as fit. */
    int32_t gpu_layers;
    /* The first layers whose experts are on the CPU. -1: as many as there is no room for on the GPU, unless
     * gpu_layers is set; REDLINE_AS_NEEDED: the same, also where gpu_layers is set. */
    int32_t cpu_experts;
    /* Places of tensors, "PATTERN=DEVICE" with commas between them, like "ffn_.*_exps=cpu": patterns are
     * regular expressions that match a part of the name. NULL: none */
    const char* tensors;
    uint64_t memory; /* bytes of the device's memory to plan with; 0: what is free there */
    /* Whether prompts are computed on the GPU also in layers of the CPU, whose weights are copied there piece
     * by piece. 0: where that should be faster; 1: yes; -1: no. */
    int32_t stream;
    int32_t main_gpu; /* number of the GPU; -1: the best */
    /* The variants in which a GPU's kernels run. 0: those that were measured to be fast, as far as
     * `cache_folder` has such findings. 1: kernels without a finding are also timed before their first use,
     * which takes up to 5 s: as `redline run` does, but a program that calls a library should know that it
     * waits for this. -1: the variants that are taken where nothing was measured. */
    int32_t tune;

    /* Functions that are told what happens while a model is loaded, and later when a lost device is opened
     * again; NULL: none. The text is valid during the call. Calls come from the thread that called the
     * library; those of progress may come from other threads, one at a time. It gets bytes of "loading";
     * other work, such as "checking kernels", has a total of 0. These functions may not call redline. */
    void (*note)(void* user, int kind, const char* text);
    void (*progress)(void* user, const char* work, uint64_t done, uint64_t total);
    void* user; /* given to both */

    /* How several devices have a model. "layer": each has some of its layers; "tensor": each computes a part
     * of every layer; "auto": the one of these that should be faster; "none": one has it. NULL: as "auto"
     * over those that `device` names. */
    const char* split_mode;

    /* The types of cached keys and of cached values, in place of cache_type. NULL: as that says */
    const char* cache_type_k;
    const char* cache_type_v;
    /* Whether keys and values of 4 or 5 bits are rotated before they are cached, where heads are a multiple
     * of 64: they lose less. 0: yes; -1: no. */
    int32_t cache_rotation;
} redline_model_options;
#define REDLINE_MODEL_OPTIONS                                                                               \
    {                                                                                                       \
        sizeof(redline_model_options), NULL, NULL, NULL, 0, 0, 0, 0, -1, -1, NULL, 0, 0, -1, 0, NULL, NULL, \
            NULL, NULL, NULL, NULL, 0                                                                       \
    }

/* A GGUF file, of a split one the first part. NULL: an error. */
REDLINE_API redline_model* redline_model_load(const char* path, const redline_model_options* options);
REDLINE_API void redline_model_free(redline_model* model);
/* The device that it runs on: "AMD Ryzen 7 7840U". */
REDLINE_API const char* redline_model_device(const redline_model* model);
/* The notes that came while the model was loaded, a line each: kernels that were put aside, a split that
 * nobody asked for, what of the file is left out; "" for none. */
REDLINE_API const char* redline_model_notes(const redline_model* model);
REDLINE_API uint64_t redline_model_context(const redline_model* model);
/* Tokens per second that are expected of a generation at the beginning of a context, by the rates that were
 * measured for the model's devices. 0: not known, as of small models and without a cache_folder. */
REDLINE_API double redline_model_speed(const redline_model* model);
/* Tokens are the numbers below this; so many logits there are. */
REDLINE_API uint32_t redline_model_vocabulary(const redline_model* model);

/* ---- tokens ---- */

/* Puts the file's token for the beginning of a text before it, where the model wants that. */
#define REDLINE_ADD_SPECIAL 1
/* Takes control tokens that are written in the text for what they say: never with a text that others wrote.
 */
#define REDLINE_PARSE_SPECIAL 2
/* Writes control tokens out (redline_piece). */
#define REDLINE_SHOW_SPECIAL 4

/* The tokens of a text: how many there are, of which the first `capacity` are written to `tokens` (which may
 * be NULL when that is 0). Negative: an error. */
REDLINE_API int64_t redline_tokenize(const redline_model* model, const char* text, size_t length, int flags,
                                     int32_t* tokens, size_t capacity);

typedef struct redline_message {
    const char* role; /* "system", "user" or "assistant" */
    const char* text;
} redline_message;
/* The same for a conversation, as the model's chat template writes it, up to where the assistant speaks. What
 * messages say never becomes a control token. */
REDLINE_API int64_t redline_chat(const redline_model* model, const redline_message* messages, size_t count,
                                 int32_t* tokens, size_t capacity);

/* The bytes of a token, without a zero at the end: how many there are, of which the first `capacity` are
 * written. They may be a part of a UTF-8 character. Negative: an error. */
REDLINE_API int64_t redline_piece(const redline_model* model, int32_t token, int flags, char* bytes,
                                  size_t capacity);
/* The same behind another token, or with a negative `previous` at the beginning of a text: without the space
 * that some encodings (Unigram) put before a text and behind a control token, and that belongs to neither. */
REDLINE_API int64_t redline_piece_after(const redline_model* model, int32_t previous, int32_t token,
                                        int flags, char* bytes, size_t capacity);
/* Whether it ends a text, or a turn of a conversation. */
REDLINE_API int redline_is_end(const redline_model* model, int32_t token);

/* ---- sessions: a text that a model reads ---- */

/* NULL: an error, which has the numbers when the device's memory is too small. The weights of a model that is
 * split are loaded here, and so it has one session at a time. A device that is lost, as after a driver's
 * reset, is opened again by the next redline_feed(), which reads the session's tokens again and is noted; a
 * device that is lost twice within 5 seconds is an error. */
REDLINE_API redline_session* redline_session_new(redline_model* model);
REDLINE_API void redline_session_free(redline_session* session);
/* Reads tokens behind those read before. 0, or negative: an error; with more tokens than the context has room
 * for nothing is read. Logits that cannot be a model's (not finite, all the same, or certain of one token
 * over and over, as a device gives that computes wrongly) are an error after which the session is empty. */
REDLINE_API int redline_feed(redline_session* session, const int32_t* tokens, size_t count);
/* Of the last token read, redline_model_vocabulary() of them; NULL before any. Valid until the next
 * redline_feed(). */
REDLINE_API const float* redline_logits(const redline_session* session);
/* How many tokens were read. */
REDLINE_API uint64_t redline_position(const redline_session* session);
/* Forgets all but the first `count` tokens, or more where the model keeps states: returns how many are left.
 * There are no logits until the next redline_feed(). */
REDLINE_API uint64_t redline_rewind(redline_session* session, uint64_t count);
/* Ends the redline_feed() that runs, or the next one, with an error. The only function for another thread. */
REDLINE_API void redline_cancel(redline_session* session);

/* ---- samplers: the choice of the next token ---- */

typedef struct redline_sampler_options {
    size_t size;             /* of this struct */
    uint32_t seed;           /* 0xFFFFFFFF: a random one */
    float temperature;       /* 0: always the likeliest token */
    int32_t top_k;           /* 0: off */
    float top_p;             /* 1: off */
    float min_p;             /* 0: off */
    int32_t repeat_last_n;   /* tokens that the penalties look back; -1: the context */
    float repeat_penalty;    /* 1: off */
    float frequency_penalty; /* 0: off */
    float presence_penalty;  /* 0: off */
    const char* grammar;     /* GBNF that the text follows; NULL: none */
    const char* json_schema; /* JSON schema that it follows; NULL: none. One of the two. What of it cannot be
                                enforced is an error. */
} redline_sampler_options;
#define REDLINE_SAMPLER_OPTIONS \
    { sizeof(redline_sampler_options), 0xFFFFFFFFu, 0.8f, 40, 0.95f, 0.05f, 64, 1.0f, 0.0f, 0.0f, NULL, NULL }

/* For sessions of the same model. */
REDLINE_API redline_sampler* redline_sampler_new(const redline_session* session,
                                                 const redline_sampler_options* options);
REDLINE_API void redline_sampler_free(redline_sampler* sampler);
/* Chooses by the logits of the last token read, and notes the choice; it is not fed. Negative: an error. */
REDLINE_API int32_t redline_sample(redline_sampler* sampler, const redline_session* session);
/* Notes a token of the prompt, for the penalties. */
REDLINE_API int redline_note(redline_sampler* sampler, int32_t token);
/* Whether the grammar lets nothing more follow. */
REDLINE_API int redline_finished(const redline_sampler* sampler);

#ifdef __cplusplus
}
#endif

#endif
