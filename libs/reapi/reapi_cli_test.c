/* Drives the library as a C program does that knows nothing of it but the interface: by dlopen. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libs/reapi/reapi_cli.h"

static int failures = 0;

#define EXPECT(condition)                                                   \
  do {                                                                      \
    if (!(condition)) {                                                     \
      ++failures;                                                           \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                       \
  } while (0)

/* One member for each function: `reapi.cancel(...)` is reapi_cli_cancel. */
#define FUNCTIONS(X)                                                                            \
  X(new) X(destroy) X(initialize) X(clone) X(match_with_jobid) X(match) X(update_allocate)      \
  X(cancel) X(partial_cancel) X(info) X(find) X(add_subgraph) X(remove_subgraph) X(set_status)  \
  X(get_status) X(get_err_msg) X(clear_err_msg)
static struct {
#define DECLARE(name) __typeof__(&reapi_cli_##name) name;
  FUNCTIONS(DECLARE)
} reapi;

static int load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return -1;
  }
#define LOOK_UP(name)                                                         \
  *(void**)&reapi.name = dlsym(library, "reapi_cli_" #name);                  \
  if (reapi.name == NULL) {                                                   \
    fprintf(stderr, "%s has no reapi_cli_%s\n", path, #name);                 \
    return -1;                                                                \
  }
  FUNCTIONS(LOOK_UP)
  return 0;
}

#define VERTEX(number, type, id, rank, path)                                            \
  "{\"id\": \"" number "\", \"metadata\": {\"type\": \"" type "\", \"id\": " id         \
  ", \"rank\": " rank ", \"paths\": {\"containment\": \"" path "\"}}}"
#define EDGE(source, target) "{\"source\": \"" source "\", \"target\": \"" target "\"}"

/* A cluster of two nodes of two cores each. */
static const char kGraph[] =
    "{\"graph\": {\"nodes\": ["
    VERTEX("0", "cluster", "0", "-1", "/cluster0") ","
    VERTEX("1", "node", "0", "0", "/cluster0/node0") ","
    VERTEX("2", "core", "0", "0", "/cluster0/node0/core0") ","
    VERTEX("3", "core", "1", "0", "/cluster0/node0/core1") ","
    VERTEX("4", "node", "1", "1", "/cluster0/node1") ","
    VERTEX("5", "core", "0", "1", "/cluster0/node1/core0") ","
    VERTEX("6", "core", "1", "1", "/cluster0/node1/core1")
    "], \"edges\": [" EDGE("0", "1") "," EDGE("1", "2") "," EDGE("1", "3") ","
    EDGE("0", "4") "," EDGE("4", "5") "," EDGE("4", "6") "]}}";

static const char kThirdNode[] =
    "{\"graph\": {\"nodes\": ["
    VERTEX("0", "cluster", "0", "-1", "/cluster0") ","
    VERTEX("7", "node", "2", "2", "/cluster0/node2") ","
    VERTEX("8", "core", "0", "2", "/cluster0/node2/core0")
    "], \"edges\": [" EDGE("0", "7") "," EDGE("7", "8") "]}}";

static const char kOptions[] =
    "{\"load_format\": \"jgf\", \"matcher_policy\": \"low\", \"match_format\": \"rv1_nosched\", "
    "\"prune_filters\": \"ALL:core\", \"reserve_vtx_vec\": 100}";

#define NODES(count)                                                                              \
  "{\"version\": 9999, \"resources\": [{\"type\": \"node\", \"count\": " count ", \"with\": ["    \
  "{\"type\": \"slot\", \"count\": 1, \"label\": \"task\", \"with\": [{\"type\": \"core\", "      \
  "\"count\": 2}]}]}], \"tasks\": [{\"command\": [\"app\"], \"slot\": \"task\", \"count\": "      \
  "{\"per_slot\": 1}}], \"attributes\": {\"system\": {\"duration\": 60}}}"

static reapi_cli_ctx_t* make(void) {
  reapi_cli_ctx_t* ctx = reapi.new();
  EXPECT(ctx != NULL);
  EXPECT(reapi.initialize(ctx, kGraph, kOptions) == 0);
  return ctx;
}

/* What a match said; R is to be freed. */
struct answer {
  int rc;
  bool reserved;
  char* R;
  int64_t at;
  double overhead;
};

static struct answer match(reapi_cli_ctx_t* ctx, int op, const char* jobspec, uint64_t jobid) {
  struct answer answer = {0, false, NULL, -1, -1};
  errno = 0;
  answer.rc = reapi.match_with_jobid(
      ctx, op, jobspec, jobid, &answer.reserved, &answer.R, &answer.at, &answer.overhead);
  return answer;
}

/* Whether the call failed with this errno; a match that succeeded after all leaves nothing behind. */
static bool match_fails(reapi_cli_ctx_t* ctx, int op, const char* jobspec, uint64_t jobid, int error) {
  struct answer answer = match(ctx, op, jobspec, jobid);
  free(answer.R);
  return answer.rc == -1 && errno == error;
}

static bool matches(reapi_cli_ctx_t* ctx, int op, const char* jobspec, uint64_t jobid) {
  struct answer answer = match(ctx, op, jobspec, jobid);
  free(answer.R);
  return answer.rc == 0;
}

/* Whether the job is in this mode. */
static bool is(reapi_cli_ctx_t* ctx, uint64_t jobid, const char* wanted, int64_t wanted_at) {
  char* mode = NULL;
  bool reserved = false;
  int64_t at = -1;
  double overhead = -1;
  if (reapi.info(ctx, jobid, &mode, &reserved, &at, &overhead) != 0) return false;
  const bool same = strcmp(mode, wanted) == 0 && at == wanted_at && overhead >= 0 &&
                    reserved == (strcmp(wanted, "RESERVED") == 0);
  free(mode);
  return same;
}

/* Whether what was wrong since the last time holds the text; NULL: nothing was. */
static bool complained(reapi_cli_ctx_t* ctx, const char* text) {
  char* message = (char*)reapi.get_err_msg(ctx);
  const bool same = text == NULL ? message[0] == '\0' : strstr(message, text) != NULL;
  if (!same) fprintf(stderr, "the text is: %s\n", message);
  free(message);
  reapi.clear_err_msg(ctx);
  return same;
}

static void test_match_and_cancel(void) {
  reapi_cli_ctx_t* ctx = make();
  struct answer answer = match(ctx, REAPI_ALLOCATE, NODES("1"), 7);
  EXPECT(answer.rc == 0 && !answer.reserved && answer.at == 0 && answer.overhead >= 0);
  EXPECT(answer.R != NULL && strstr(answer.R, "\"rank\":\"0\",\"children\":{\"core\":\"0-1\"}"));
  free(answer.R);
  EXPECT(is(ctx, 7, "ALLOCATED", 0));

  EXPECT(match_fails(ctx, REAPI_ALLOCATE, NODES("2"), 8, EBUSY));
  EXPECT(match_fails(ctx, REAPI_ALLOCATE, NODES("1"), 7, EEXIST));
  EXPECT(match_fails(ctx, REAPI_SATISFIABILITY, NODES("3"), 8, ENODEV));
  EXPECT(match_fails(ctx, 0, NODES("1"), 8, EINVAL));
  EXPECT(match_fails(ctx, 7, NODES("1"), 8, EINVAL));
  EXPECT(complained(ctx, "reapi_cli_match_with_jobid: the operation must be from 1 to 6, is 7\n"));
  EXPECT(complained(ctx, NULL));

  answer = match(ctx, REAPI_ALLOCATE_ORELSE_RESERVE, NODES("2"), 8);
  EXPECT(answer.rc == 0 && answer.reserved && answer.at == 60);
  free(answer.R);
  EXPECT(is(ctx, 8, "RESERVED", 60));
  answer = match(ctx, REAPI_SATISFIABILITY, NODES("2"), 9);
  EXPECT(answer.rc == 0 && strcmp(answer.R, "") == 0);
  free(answer.R);

  EXPECT(reapi.cancel(ctx, 8, false) == 0);
  EXPECT(is(ctx, 8, "CANCELED", 60));
  EXPECT(reapi.cancel(ctx, 8, false) == -1 && errno == ENOENT);
  EXPECT(reapi.cancel(ctx, 8, true) == 0);
  EXPECT(reapi.cancel(ctx, UINT64_MAX, false) == -1 && errno == ENOENT);
  EXPECT(!is(ctx, 99, "CANCELED", 0) && errno == ENOENT);
  reapi.destroy(ctx);
}

static void test_match_numbers_jobs_itself(void) {
  reapi_cli_ctx_t* ctx = make();
  EXPECT(matches(ctx, REAPI_ALLOCATE, NODES("1"), 1));
  uint64_t jobid = 0;
  struct answer answer = {0, false, NULL, -1, -1};
  EXPECT(reapi.match(ctx, REAPI_ALLOCATE, NODES("1"), &jobid, &answer.reserved, &answer.R,
                     &answer.at, &answer.overhead) == 0);
  EXPECT(jobid == 2);
  free(answer.R);
  EXPECT(reapi.match(ctx, REAPI_ALLOCATE, NODES("1"), &jobid, &answer.reserved, &answer.R,
                     &answer.at, &answer.overhead) == -1 && errno == EBUSY);
  EXPECT(reapi.cancel(ctx, 2, false) == 0);
  EXPECT(reapi.match(ctx, REAPI_ALLOCATE, NODES("1"), &jobid, &answer.reserved, &answer.R,
                     &answer.at, &answer.overhead) == 0);
  EXPECT(jobid == 4);
  free(answer.R);
  reapi.destroy(ctx);
}

static void test_partial_cancel_and_restore(void) {
  reapi_cli_ctx_t* ctx = make();
  EXPECT(matches(ctx, REAPI_ALLOCATE, NODES("2"), 1));
  bool full = true;
#define RANK(rank, cores)                                                                       \
  "{\"version\": 1, \"execution\": {\"R_lite\": [{\"rank\": \"" rank "\", \"children\": "       \
  "{\"core\": \"" cores "\"}}], \"nodelist\": [\"node0\"], \"starttime\": 0, \"expiration\": 60}}"
  EXPECT(reapi.partial_cancel(ctx, 1, RANK("1", "0"), false, &full) == -1 && errno == EINVAL);
  EXPECT(complained(ctx, "a rank is given back as a whole"));
  EXPECT(reapi.partial_cancel(ctx, 1, RANK("1", "0-1"), false, &full) == 0 && !full);
  EXPECT(reapi.partial_cancel(ctx, 1, RANK("1", "0-1"), false, &full) == -1 && errno == EINVAL);
  EXPECT(matches(ctx, REAPI_ALLOCATE, NODES("1"), 2));
  EXPECT(reapi.partial_cancel(ctx, 1, RANK("0", "0-1"), false, &full) == 0 && full);
  EXPECT(is(ctx, 1, "CANCELED", 0));
  EXPECT(reapi.partial_cancel(ctx, 1, RANK("0", "0-1"), false, &full) == -1 && errno == ENOENT);
  EXPECT(reapi.partial_cancel(ctx, 1, RANK("0", "0-1"), true, &full) == 0);

  int64_t at = -1;
  double overhead = -1;
  const char* out = NULL;
  EXPECT(reapi.update_allocate(ctx, 2, RANK("0", "0"), &at, &overhead, &out) == -1);
  EXPECT(errno == EEXIST);
  EXPECT(reapi.update_allocate(ctx, 3, RANK("1", "0"), &at, &overhead, &out) == -1);
  EXPECT(errno == EINVAL);
  EXPECT(complained(ctx, "\"/cluster0/node1/core0\" is held by job 2 at that time"));
  EXPECT(reapi.update_allocate(ctx, 3, RANK("0", "0"), &at, &overhead, &out) == 0);
  EXPECT(at == 0 && strstr(out, "\"expiration\":60") != NULL);
  free((char*)out);
  EXPECT(match_fails(ctx, REAPI_ALLOCATE, NODES("1"), 4, EBUSY));
  reapi.destroy(ctx);
}

static void test_find_and_status(void) {
  reapi_cli_ctx_t* ctx = make();
  char* R = "";
  EXPECT(reapi.find(ctx, "status=down", "jgf", &R) == 0 && R == NULL);
  int status = -1;
  EXPECT(reapi.get_status(ctx, "/cluster0/node1", &status) == 0 && status == REAPI_UP);
  EXPECT(reapi.set_status(ctx, "/cluster0/node1", REAPI_DOWN) == 0);
  EXPECT(reapi.get_status(ctx, "/cluster0/node1", &status) == 0 && status == REAPI_DOWN);
  EXPECT(reapi.find(ctx, "status=down", "jgf", &R) == 0);
  EXPECT(strstr(R, "/cluster0/node1/core0") != NULL && strstr(R, "/cluster0/node0") == NULL);
  free(R);
  EXPECT(reapi.find(ctx, "status=down", NULL, &R) == 0 && strstr(R, "R_lite") != NULL);
  free(R);
  EXPECT(reapi.find(ctx, "status=down", "simple", &R) == 0);
  EXPECT(strstr(R, "      ------node1[1:x]\n      ---cluster0[1:x]\n") != NULL);
  free(R);
  EXPECT(reapi.find(ctx, "status=down", "xml", &R) == -1 && errno == EINVAL);
  EXPECT(reapi.find(ctx, "nonsense=1", "jgf", &R) == -1 && errno == EINVAL);
  EXPECT(reapi.set_status(ctx, "/cluster0/node1", 2) == -1 && errno == EINVAL);
  EXPECT(reapi.set_status(ctx, "/nowhere", REAPI_UP) == -1 && errno == EINVAL);
  EXPECT(reapi.get_status(ctx, "/nowhere", &status) == -1 && errno == EINVAL);
  reapi.destroy(ctx);
}

/* Fluxion crashes on many of these: jobs of a clone, clones of clones, graphs that change under
 * live jobs. */
static void test_clones_and_changing_graphs(void) {
  reapi_cli_ctx_t* ctx = make();
  EXPECT(matches(ctx, REAPI_ALLOCATE, NODES("1"), 1));
  reapi_cli_ctx_t* first = reapi.clone(ctx);
  reapi_cli_ctx_t* second = reapi.clone(ctx);
  reapi_cli_ctx_t* third = reapi.clone(first);
  EXPECT(first != NULL && second != NULL && third != NULL);
  EXPECT(reapi.cancel(first, 1, false) == 0);
  EXPECT(is(first, 1, "CANCELED", 0) && is(ctx, 1, "ALLOCATED", 0) && is(third, 1, "ALLOCATED", 0));
  EXPECT(matches(first, REAPI_ALLOCATE, NODES("2"), 2));
  EXPECT(match_fails(second, REAPI_ALLOCATE, NODES("2"), 2, EBUSY));
  reapi.destroy(ctx);

  EXPECT(reapi.add_subgraph(second, kThirdNode) == 0);
  EXPECT(matches(second, REAPI_ALLOCATE, NODES("1"), 2));
  EXPECT(match_fails(second, REAPI_SATISFIABILITY, NODES("3"), 3, ENODEV));
  EXPECT(reapi.remove_subgraph(second, "/cluster0/node0") == 0);
  EXPECT(is(second, 1, "ALLOCATED", 0));
  EXPECT(reapi.cancel(second, 1, false) == 0);
  EXPECT(is(second, 1, "CANCELED", 0));
  EXPECT(reapi.remove_subgraph(second, "/cluster0/node0") == -1 && errno == ENOENT);
  EXPECT(reapi.remove_subgraph(second, "/cluster0") == -1 && errno == EINVAL);
  EXPECT(reapi.cancel(second, 2, false) == 0);
  EXPECT(reapi.add_subgraph(second, kGraph) == 0);
  EXPECT(matches(second, REAPI_ALLOCATE, NODES("2"), 4));
  EXPECT(reapi.add_subgraph(second, "{}") == -1 && errno == EINVAL);
  reapi.destroy(first);
  reapi.destroy(second);
  reapi.destroy(third);
}

/* The case is refused with EINVAL, and the text says why. */
#define REFUSED(ctx, call, text)     \
  do {                               \
    errno = 0;                       \
    EXPECT((call) == -1);            \
    EXPECT(errno == EINVAL);         \
    EXPECT(complained((ctx), text)); \
  } while (0)

static void test_options_and_graphs_that_are_none(void) {
  reapi_cli_ctx_t* ctx = reapi.new();
  const struct {
    const char* options;
    const char* text;
  } cases[] = {
      {"", "options: is no JSON"},
      {"[]", "options: must be an object"},
      {"{}", "options.load_format: is missing"},
      {"{\"load_format\": 1}", "options.load_format: must be a string, is 1"},
      {"{\"load_format\": \"grug\"}", "must be jgf or rv1exec, is \"grug\""},
      {"{\"load_format\": \"jgf\", \"matcher_name\": \"XA\"}", "matcher_name: must be CA"},
      {"{\"load_format\": \"jgf\", \"matcher_policy\": \"best\"}", "\"best\""},
      {"{\"load_format\": \"jgf\", \"matcher_policy\": null}", "must be a string, is null"},
      {"{\"load_format\": \"jgf\", \"traverser_policy\": \"odd\"}", "must be simple or flexible"},
      {"{\"load_format\": \"jgf\", \"match_format\": \"xml\"}", "rv1_nosched"},
      {"{\"load_format\": \"jgf\", \"prune_filters\": \"core\"}", "core"},
      {"{\"load_format\": \"jgf\", \"reserve_vtx_vec\": \"1\"}", "must be an integer"},
      {"{\"load_format\": \"jgf\", \"color\": \"red\"}", "options.color: is unknown"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    REFUSED(ctx, reapi.initialize(ctx, kGraph, cases[i].options), cases[i].text);
  }
  EXPECT(reapi.initialize(ctx, "", kOptions) == -1 && errno == EPROTO);
  EXPECT(complained(ctx, "is no JSON"));
  EXPECT(reapi.initialize(ctx, "{\"graph\": {\"nodes\": [], \"edges\": []}}", kOptions) == -1);
  EXPECT(errno == EPROTO && complained(ctx, "no vertex is the root"));
  REFUSED(ctx,
          reapi.initialize(ctx,
                           "{\"graph\": {\"nodes\": [{\"id\": \"0\", \"metadata\": {\"type\": "
                           "\"cluster\", \"properties\": {\"a\": 1}, \"paths\": {\"containment\": "
                           "\"/cluster0\"}}}], \"edges\": []}}",
                           kOptions),
          "properties.a: must be a string, is number");
  EXPECT(reapi.initialize(ctx, RANK("0-1", "0"), "{\"load_format\": \"rv1exec\"}") == -1);
  EXPECT(errno == EPROTO && complained(ctx, "execution.nodelist: must name as many"));
  EXPECT(reapi.initialize(ctx, RANK("3", "0-1"), "{\"load_format\": \"rv1exec\"}") == 0);
  EXPECT(matches(ctx, REAPI_ALLOCATE, NODES("1"), 1));
  REFUSED(ctx, reapi.initialize(ctx, kGraph, kOptions), "is initialized already");
  reapi.destroy(ctx);
}

/* Every argument that may not be NULL, as NULL. `c` is initialized or not, or NULL. */
static void refuse_all(reapi_cli_ctx_t* c, const char* text) {
  bool flag = false;
  char* R = NULL;
  const char* out = NULL;
  int64_t at = 0;
  double ov = 0;
  uint64_t id = 0;
  int status = 0;
  REFUSED(c, reapi.match_with_jobid(c, 1, NODES("1"), 1, &flag, &R, &at, &ov), text);
  REFUSED(c, reapi.match(c, 1, NODES("1"), &id, &flag, &R, &at, &ov), text);
  REFUSED(c, reapi.update_allocate(c, 1, RANK("0", "0"), &at, &ov, &out), text);
  REFUSED(c, reapi.cancel(c, 1, false), text);
  REFUSED(c, reapi.partial_cancel(c, 1, RANK("0", "0"), false, &flag), text);
  REFUSED(c, reapi.info(c, 1, &R, &flag, &at, &ov), text);
  REFUSED(c, reapi.find(c, "status=up", "jgf", &R), text);
  REFUSED(c, reapi.add_subgraph(c, kThirdNode), text);
  REFUSED(c, reapi.remove_subgraph(c, "/cluster0/node0"), text);
  REFUSED(c, reapi.set_status(c, "/cluster0/node0", 1), text);
  REFUSED(c, reapi.get_status(c, "/cluster0/node0", &status), text);
  REFUSED(c, reapi.clone(c) == NULL ? -1 : 0, text);
}

static void test_null(void) {
  reapi.destroy(NULL);
  reapi.clear_err_msg(NULL);
  REFUSED(NULL, reapi.initialize(NULL, kGraph, kOptions), "ctx is NULL");
  refuse_all(NULL, "ctx is NULL");
  reapi_cli_ctx_t* empty = reapi.new();
  refuse_all(empty, "has not been initialized");
  REFUSED(empty, reapi.initialize(empty, NULL, kOptions), "graph is NULL");
  REFUSED(empty, reapi.initialize(empty, kGraph, NULL), "options is NULL");
  reapi.destroy(empty);

  reapi_cli_ctx_t* c = make();
  bool flag = false;
  char* R = NULL;
  const char* out = NULL;
  int64_t at = 0;
  double ov = 0;
  uint64_t id = 0;
  REFUSED(c, reapi.match_with_jobid(c, 1, NULL, 1, &flag, &R, &at, &ov), "jobspec is NULL");
  REFUSED(c, reapi.match_with_jobid(c, 1, NODES("1"), 1, NULL, &R, &at, &ov), "reserved is NULL");
  REFUSED(c, reapi.match_with_jobid(c, 1, NODES("1"), 1, &flag, NULL, &at, &ov), "R is NULL");
  REFUSED(c, reapi.match_with_jobid(c, 1, NODES("1"), 1, &flag, &R, NULL, &ov), "at is NULL");
  REFUSED(c, reapi.match_with_jobid(c, 1, NODES("1"), 1, &flag, &R, &at, NULL), "overhead is NULL");
  REFUSED(c, reapi.match(c, 1, NODES("1"), NULL, &flag, &R, &at, &ov), "jobid is NULL");
  REFUSED(c, reapi.match(c, 1, NULL, &id, &flag, &R, &at, &ov), "jobspec is NULL");
  REFUSED(c, reapi.update_allocate(c, 1, NULL, &at, &ov, &out), "R is NULL");
  REFUSED(c, reapi.update_allocate(c, 1, RANK("0", "0"), NULL, &ov, &out), "at is NULL");
  REFUSED(c, reapi.update_allocate(c, 1, RANK("0", "0"), &at, NULL, &out), "overhead is NULL");
  REFUSED(c, reapi.update_allocate(c, 1, RANK("0", "0"), &at, &ov, NULL), "R_out is NULL");
  REFUSED(c, reapi.partial_cancel(c, 1, NULL, false, &flag), "R is NULL");
  REFUSED(c, reapi.partial_cancel(c, 1, RANK("0", "0"), false, NULL), "full_removal is NULL");
  REFUSED(c, reapi.info(c, 1, NULL, &flag, &at, &ov), "mode is NULL");
  REFUSED(c, reapi.info(c, 1, &R, NULL, &at, &ov), "reserved is NULL");
  REFUSED(c, reapi.info(c, 1, &R, &flag, NULL, &ov), "at is NULL");
  REFUSED(c, reapi.info(c, 1, &R, &flag, &at, NULL), "overhead is NULL");
  REFUSED(c, reapi.find(c, NULL, "jgf", &R), "criteria is NULL");
  REFUSED(c, reapi.find(c, "status=up", "jgf", NULL), "R is NULL");
  REFUSED(c, reapi.add_subgraph(c, NULL), "jgf is NULL");
  REFUSED(c, reapi.remove_subgraph(c, NULL), "path is NULL");
  REFUSED(c, reapi.set_status(c, NULL, 0), "path is NULL");
  REFUSED(c, reapi.get_status(c, NULL, NULL), "path is NULL");
  REFUSED(c, reapi.get_status(c, "/cluster0", NULL), "status is NULL");
  reapi.destroy(c);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s LIBRARY\n", argv[0]);
    return 2;
  }
  if (load(argv[1]) != 0) return 1;
  test_match_and_cancel();
  test_match_numbers_jobs_itself();
  test_partial_cancel_and_restore();
  test_find_and_status();
  test_clones_and_changing_graphs();
  test_options_and_graphs_that_are_none();
  test_null();
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
