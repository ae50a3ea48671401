/* Fluxion's C interface, as libreapi_cli.so of flux-sched 0.54 has it, on our own engine:
 * libfluxqueue_reapi.so. A program that was written for the one runs on the other; it may go on
 * including Fluxion's own header.
 *
 * 0 is success, -1 an error with errno; reapi_cli_get_err_msg tells what was wrong. Strings that
 * come back are malloc'ed, and the caller's to free. A NULL where something must be, text of
 * another form than documented, or a context before reapi_cli_initialize: EINVAL. (NULL for `ctx`
 * alone leaves no text.) ENOMEM: out of memory. Nothing is written to the out parameters of a call
 * that fails.
 *
 * Contexts share nothing: each may be used by a thread of its own, but by one at a time.
 */
#ifndef FLUXQUEUE_LIBS_REAPI_REAPI_CLI_H
#define FLUXQUEUE_LIBS_REAPI_REAPI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// NOLINTBEGIN(modernize-use-using, readability-identifier-naming, readability-function-size): it is
// C, and Fluxion's.
typedef struct reapi_cli_ctx reapi_cli_ctx_t;

enum {
  REAPI_ALLOCATE = 1,
  REAPI_ALLOCATE_WITH_SATISFIABILITY = 2,
  REAPI_ALLOCATE_ORELSE_RESERVE = 3,
  REAPI_SATISFIABILITY = 4,
  REAPI_WITHOUT_ALLOCATING = 5,
  REAPI_WITHOUT_ALLOCATING_FUTURE = 6
};

enum { REAPI_UP = 0, REAPI_DOWN = 1 };

/* NULL: ENOMEM. */
reapi_cli_ctx_t* reapi_cli_new(void);
/* NULL is nothing to destroy. */
void reapi_cli_destroy(reapi_cli_ctx_t* ctx);

/* Loads the graph; once for each context. `options` is a JSON object of strings: load_format (jgf
 * or rv1exec; must be there), matcher_policy, traverser_policy, match_format (rv1, rv1_nosched,
 * jgf, rlite, simple), prune_filters; see session_options.h. EPROTO: the text makes no graph. */
int reapi_cli_initialize(reapi_cli_ctx_t* ctx, const char* graph, const char* options);

/* A copy with all that is held; what happens to one does not happen to the other. NULL: an error.
 */
reapi_cli_ctx_t* reapi_cli_clone(reapi_cli_ctx_t* ctx);

/* Finds a place for a job, and holds it but for the operations 4 to 6. EBUSY: not now; ENODEV: not
 * ever; EEXIST: the job holds something. R is "" for operation 4. `overhead`: seconds that it took.
 */
int reapi_cli_match_with_jobid(reapi_cli_ctx_t* ctx,
                               int op,
                               const char* jobspec,
                               uint64_t jobid,
                               bool* reserved,
                               char** R,
                               int64_t* at,
                               double* overhead);
/* The same for a job that gets a new id, which is used up even when nothing was found. */
int reapi_cli_match(reapi_cli_ctx_t* ctx,
                    int op,
                    const char* jobspec,
                    uint64_t* jobid,
                    bool* reserved,
                    char** R,
                    int64_t* at,
                    double* overhead);

/* Holds again what R (version 1) says. EEXIST: the job holds something. */
int reapi_cli_update_allocate(reapi_cli_ctx_t* ctx,
                              uint64_t jobid,
                              const char* R,
                              int64_t* at,
                              double* overhead,
                              const char** R_out);

/* ENOENT, or 0 if that is to be no error: the job holds nothing. */
int reapi_cli_cancel(reapi_cli_ctx_t* ctx, uint64_t jobid, bool noent_ok);
/* Gives back what R says: vertices if it has the scheduling key, else whole ranks. ENOENT also for
 * a job that is reserved. */
int reapi_cli_partial_cancel(
    reapi_cli_ctx_t* ctx, uint64_t jobid, const char* R, bool noent_ok, bool* full_removal);

/* `mode`: ALLOCATED, RESERVED or CANCELED. ENOENT: such a job never was. */
int reapi_cli_info(reapi_cli_ctx_t* ctx,
                   uint64_t jobid,
                   char** mode,
                   bool* reserved,
                   int64_t* at,
                   double* overhead);

/* The vertices that meet the criteria, such as "status=down" (see libs/graph/find_criteria.h), with
 * those above them; `format` as match_format, or NULL for that itself. R is NULL if there is none.
 */
int reapi_cli_find(reapi_cli_ctx_t* ctx, const char* criteria, const char* format, char** R);

/* Adds what the JGF has and the graph has not. */
int reapi_cli_add_subgraph(reapi_cli_ctx_t* ctx, const char* jgf);
/* Takes a vertex out with all below it, also from the jobs that hold some of it. ENOENT. */
int reapi_cli_remove_subgraph(reapi_cli_ctx_t* ctx, const char* path);

/* Down: it, and what is below it, is not given out. */
int reapi_cli_set_status(reapi_cli_ctx_t* ctx, const char* path, int status);
/* As it was set. */
int reapi_cli_get_status(reapi_cli_ctx_t* ctx, const char* path, int* status);

/* What was wrong since the last clearing, a line for each failure. NULL: out of memory. */
const char* reapi_cli_get_err_msg(reapi_cli_ctx_t* ctx);
void reapi_cli_clear_err_msg(reapi_cli_ctx_t* ctx);

// NOLINTEND(modernize-use-using, readability-identifier-naming, readability-function-size)

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
