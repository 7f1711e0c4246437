/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_allocation: hosts and slots from the environment of each resource manager that mpirun supports, bracketed lists of names, the effect
 * of --host on an allocation. Malformed values are errors with a text, never a job on fewer hosts.
 */
#include <CUnit/Basic.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "tools/mpirun/allocation.h"
#include "tools/mpirun/hostlist.h"

static char said[2000]; /* messages of errors */

int report(int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(said, sizeof(said), format, args);
    va_end(args);
    return code;
}

/* No resolver is called; this machine has the name that the test sets. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hint, struct addrinfo **found)
{
    (void)name, (void)service, (void)hint, (void)found;
    return EAI_NONAME;
}

int gethostname(char *name, size_t room)
{
    snprintf(name, room, "here.dom");
    return 0;
}

/* Prints rows as "a:2 b:1", with '*' for this host. */
static const char *rows_words(const host_list *hosts)
{
    static char text[4000];
    size_t used = 0;

    *text = '\0';
    for (uint32_t i = 0; i < hosts->count && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s%s:%u", i ? " " : "", hosts->rows[i].is_here ? "*" : "",
                                 hosts->rows[i].name, hosts->rows[i].slots);
    return text;
}

/* Replaces all variables of resource managers by NAME=VALUE...; ends with NULL. */
static void environment_is(const char *first, ...)
{
    static const char *const all[] = {"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_TASKS_PER_NODE",
        "SLURM_JOB_CPUS_PER_NODE", "SLURM_CPUS_PER_TASK", "SLURMD_NODENAME", "PBS_JOBID", "PBS_ENVIRONMENT", "PBS_NODEFILE", "LSB_JOBID",
        "LSB_BATCH_JID", "LSB_DJOB_HOSTFILE", "LSB_MCPU_HOSTS", "LSB_HOSTS", "JOB_ID", "SGE_TASK_ID", "PE_HOSTFILE", "FLUX_JOB_ID",
        "FLUX_URI", "FLUX_JOB_NNODES", "FLUX_JOB_SIZE", "WEFT_ALLOCATION"};
    va_list args;

    for (size_t i = 0; i < weft_count(all); i++)
        unsetenv(all[i]);
    va_start(args, first);
    for (const char *item = first; item; item = va_arg(args, const char *))
        putenv((char *)item);
    va_end(args);
    *said = '\0';
}

/* The environment yields these rows. */
static void gives(const char *wanted)
{
    allocation given;
    int rc = allocation_read(&given);

    CU_ASSERT_EQUAL(rc, 0);
    CU_ASSERT_STRING_EQUAL(rows_words(&given.hosts), wanted);
    if (rc || strcmp(rows_words(&given.hosts), wanted))
        printf("\n    wanted '%s', got '%s' (%d: %s)\n", wanted, rows_words(&given.hosts), rc, said);
    allocation_free(&given);
}

/* The environment is an error with this text. */
static void is_refused(const char *words)
{
    allocation given;
    int rc = allocation_read(&given);

    CU_ASSERT_EQUAL(rc, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, words));
    if (rc != 2 || !strstr(said, words))
        printf("\n    wanted '%s', got %d '%s' ('%s')\n", words, rc, said, rows_words(&given.hosts));
    allocation_free(&given);
}

static const char *file_of(const char *variable, const char *text)
{
    static char setting[300];
    static int number;

    snprintf(setting, sizeof(setting), "%s=weft-allocation-%ld-%d", variable, (long)getpid(), number++);
    FILE *out = fopen(strchr(setting, '=') + 1, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    fputs(text, out);
    fclose(out);
    return setting;
}

static int name_add(void *owner, const char *name)
{
    char *text = owner;
    size_t used = strlen(text);

    snprintf(text + used, 200 - used, "%s%s", used ? " " : "", name);
    return used > 150;
}

static int name_count(void *owner, const char *name)
{
    (void)name;
    ++*(uint32_t *)owner;
    return 0;
}

static void name_lists(void)
{
    static const struct {
        const char *text, *names; /* NULL: malformed */
    } cases[] = {
        {"a", "a"}, {"a,b", "a b"}, {"n[1-3]", "n1 n2 n3"}, {"n[01-03,7]", "n01 n02 n03 n7"}, {"n[9-11]", "n9 n10 n11"},
        {"n[08-11]", "n08 n09 n10 n11"}, {"n[1]", "n1"}, {"n[1-2]x", "n1x n2x"}, {"r[1-2]n[01-02]", "r1n01 r1n02 r2n01 r2n02"},
        {"a,n[1,3],b[2-2].dom,c", "a n1 n3 b2.dom c"}, {"[1-2]", "1 2"}, {"n[0-0]", "n0"}, 
        {"n[007-008]-ib[0,1]", "n007-ib0 n007-ib1 n008-ib0 n008-ib1"},
        {"", ""}, {"a,", "a "}, /* callers reject empty names */
        {"n[", NULL}, {"n]", NULL}, {"n[]", NULL}, {"n[1-]", NULL}, {"n[-1]", NULL}, {"n[1-2", NULL}, {"n[3-1]", NULL}, {"n[a-b]", NULL},
        {"n[1,]", NULL}, {"n[,1]", NULL}, {"n[1 2]", NULL}, {"n[1-2-3]", NULL}, {"n[[1]]", NULL}, {"n[1]]", NULL}, {"n[1234567890]", NULL},
        {"n[1-2]m[", NULL}, {"n[0x1]", NULL}, {"n[+1]", NULL},
    };
    char text[200];

    for (size_t i = 0; i < weft_count(cases); i++) {
        *text = '\0';
        int rc = hostlist_each(cases[i].text, name_add, text);
        CU_ASSERT_EQUAL(rc, cases[i].names ? 0 : HOSTLIST_MALFORMED);
        if (cases[i].names && strcmp(text, cases[i].names)) {
            CU_FAIL("other names");
            printf("\n    %s: wanted '%s', got '%s'\n", cases[i].text, cases[i].names, text);
        }
    }
    *text = '\0';
    CU_ASSERT_EQUAL(hostlist_each("n[0-999999999]", name_add, text), 1); /* ends when the callback refuses */
    char longest[2 * HOSTLIST_NAME_MAX];
    char repeats[17 * 5 + 1] = ""; /* 2^17 names, most of them the same */
    for (int i = 0; i < 17; i++)
        strcat(repeats, "[1,1]");
    uint32_t names = 0;
    CU_ASSERT_EQUAL(hostlist_each(repeats, name_count, &names), HOSTLIST_TOO_MANY);
    CU_ASSERT_EQUAL(names, HOSTLIST_NAMES_MAX);
    memset(longest, 'n', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    CU_ASSERT_EQUAL(hostlist_each(longest, name_add, text), HOSTLIST_MALFORMED);
    memcpy(longest + HOSTLIST_NAME_MAX - 3, "[1-2]", 6);
    CU_ASSERT_EQUAL(hostlist_each(longest, name_add, text), 1); /* 298 letters: accepted */
    memcpy(longest + HOSTLIST_NAME_MAX - 2, "[10-11]", 8);
    CU_ASSERT_EQUAL(hostlist_each(longest, name_add, text), HOSTLIST_MALFORMED);
}

static void counts(void)
{
    static const struct {
        const char *text;
        int count;
        uint32_t values[6];
    } cases[] = {
        {"1", 1, {1}}, {"2(x3)", 3, {2, 2, 2}}, {"2(x2),1", 3, {2, 2, 1}}, {"4,2(x1),3(x2)", 4, {4, 2, 3, 3}}, {"0", 1, {0}},
        {"4096", 1, {4096}},
        {"", -1, {0}}, {"a", -1, {0}}, {"2(x", -1, {0}}, {"2(x3", -1, {0}}, {"2(3)", -1, {0}}, {"2(x0)", -1, {0}}, {"2,", -1, {0}},
        {",2", -1, {0}}, {"-1", -1, {0}}, {"2(x-1)", -1, {0}}, {"2(x7)", -1, {0}}, {"4097", -1, {0}}, {"99999999999", -1, {0}},
        {"1 2", -1, {0}},
        {"2(x3)x", -1, {0}}, {"+2", -1, {0}}, {" 2", -1, {0}}, {"1,1,1,1,1,1,1", -1, {0}},
    };
    uint32_t values[6];

    for (size_t i = 0; i < weft_count(cases); i++) {
        int count = allocation_counts(cases[i].text, values, 6);
        CU_ASSERT_EQUAL(count, cases[i].count);
        if (count != cases[i].count)
            printf("\n    '%s': wanted %d, got %d\n", cases[i].text, cases[i].count, count);
        for (int v = 0; v < count; v++)
            CU_ASSERT_EQUAL(values[v], cases[i].values[v]);
    }
}

static void slurm(void)
{
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[01-03]", "SLURM_TASKS_PER_NODE=2(x2),1", "SLURMD_NODENAME=n02", NULL);
    gives("n01:2 *n02:2 n03:1");
    environment_is("SLURM_JOBID=7", "SLURM_NODELIST=n[01-03]", "SLURM_TASKS_PER_NODE=2(x3)", NULL);
    gives("n01:2 n02:2 n03:2");
    /* a shell in a step of one task: the step's count is not the job's */
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=a,b", "SLURM_TASKS_PER_NODE=1", "SLURM_JOB_CPUS_PER_NODE=4(x2)", NULL);
    gives("a:4 b:4");
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=a,b", "SLURM_JOB_CPUS_PER_NODE=4,1", "SLURM_CPUS_PER_TASK=2", NULL);
    gives("a:2 b:1");
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=a", "SLURM_TASKS_PER_NODE=0", NULL);
    gives("a:1");
    /* another machine's localhost: only Slurm tells this host */
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=localhost", "SLURM_TASKS_PER_NODE=1", NULL);
    gives("localhost:1");
    environment_is("SLURM_JOB_ID=7", NULL);
    gives("");
    environment_is("SLURM_JOB_NODELIST=a", "SLURM_TASKS_PER_NODE=1", NULL);
    gives("");
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[01-03]", "SLURM_TASKS_PER_NODE=2(x2)", NULL);
    is_refused("matches the 3 hosts of 'n[01-03]'");
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[01-03]", "SLURM_TASKS_PER_NODE=junk", "SLURM_JOB_CPUS_PER_NODE=", NULL);
    is_refused("SLURM_TASKS_PER_NODE 'junk'");
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[01-03", "SLURM_TASKS_PER_NODE=2", NULL);
    is_refused("a range is written as");
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-999999999]", "SLURM_TASKS_PER_NODE=2", NULL);
    is_refused("more than 4160 hosts");
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=a,,b", "SLURM_TASKS_PER_NODE=2(x2)", NULL);
    is_refused("not a host name");
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=a,-oProxyCommand=x", "SLURM_TASKS_PER_NODE=2(x2)", NULL);
    is_refused("not a host name");
}

static void files(void)
{
    environment_is("PBS_JOBID=1.srv", file_of("PBS_NODEFILE", "h1\nh1\nh2\nh1\n"), NULL);
    gives("h1:3 h2:1");
    environment_is("PBS_JOBID=1.srv", file_of("PBS_NODEFILE", "h1\nhere\nh2\nhere\n"), NULL);
    gives("h1:1 *here:2 h2:1");
    environment_is("PBS_JOBID=1.srv", file_of("PBS_NODEFILE", "h1.dom\r\n\n  h2.dom\n"), NULL);
    gives("h1.dom:1 h2.dom:1");
    environment_is("PBS_JOBID=1.srv", file_of("PBS_NODEFILE", "\n"), NULL);
    is_refused("lists no host");
    environment_is("PBS_JOBID=1.srv", file_of("PBS_NODEFILE", "h1\nh;2\n"), NULL);
    is_refused(":2: not a host name: 'h;2'");
    environment_is("PBS_JOBID=1.srv", "PBS_NODEFILE=/nosuch", NULL);
    is_refused("cannot read /nosuch");
    environment_is("PBS_NODEFILE=/nosuch", NULL); /* no job: a stale variable */
    gives("");
    environment_is("JOB_ID=9",
                   file_of("PE_HOSTFILE", "h1.dom 4 all.q@h1.dom UNDEFINED\nh2.dom 2 all.q@h2.dom 0,1:0,2\n"
                                          "h1.dom 1 b.q@h1 <NULL>\n"), NULL);
    gives("h1.dom:5 h2.dom:2");
    environment_is("JOB_ID=9", file_of("PE_HOSTFILE", "h1 four all.q x\n"), NULL);
    is_refused("the host's name must be followed by a number of slots, not 'four'");
    environment_is("JOB_ID=9", file_of("PE_HOSTFILE", "h1 0 all.q x\n"), NULL);
    is_refused("number of slots");
    environment_is("LSB_JOBID=3", "LSB_MCPU_HOSTS=x 9", file_of("LSB_DJOB_HOSTFILE", "h1\nh2\nh2\n"), NULL);
    gives("h1:1 h2:2");
}

static void words(void)
{
    environment_is("LSB_JOBID=3", "LSB_MCPU_HOSTS=h1 2 h2 4", "LSB_HOSTS=x y", NULL);
    gives("h1:2 h2:4");
    environment_is("LSB_JOBID=3", "LSB_HOSTS=h1 h1 h2", NULL);
    gives("h1:2 h2:1");
    environment_is("LSB_JOBID=3", "LSB_MCPU_HOSTS=h1 2 h2", NULL);
    is_refused("no number of slots follows 'h2'");
    environment_is("LSB_JOBID=3", "LSB_MCPU_HOSTS=h1 -2", NULL);
    is_refused("no number of slots follows 'h1'");
    environment_is("FLUX_JOB_ID=f12", "FLUX_JOB_NNODES=1", "FLUX_JOB_SIZE=3", NULL);
    gives("*localhost:3");
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=a", "SLURM_TASKS_PER_NODE=1", "LSB_JOBID=3", "LSB_HOSTS=x", NULL);
    gives("a:1"); /* the first name of Slurm's list */
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=junk[", "WEFT_ALLOCATION=none", NULL);
    gives("");
    environment_is("LSB_JOBID=3", "LSB_HOSTS=h1", "WEFT_ALLOCATION=auto", NULL);
    gives("h1:1");
    environment_is("LSB_JOBID=3", "LSB_HOSTS=h1", "WEFT_ALLOCATION=slum", NULL);
    is_refused("must be auto or none, not 'slum'");
}

/* --host as given yields these rows, or (code 2) an error with this text. */
static void narrows(const char *hosts, int code, const char *wanted)
{
    options opts = {0};

    *said = '\0';
    if (hosts) {
        opts.has_hosts = true;
        CU_ASSERT_EQUAL_FATAL(hosts_add(&opts.hosts, "--host", hosts), 0);
    }
    int rc = allocation_apply(&opts);
    bool is_so = rc == code && (code ? strstr(said, wanted) != NULL : !strcmp(rows_words(&opts.hosts), wanted));
    CU_ASSERT_TRUE(is_so);
    if (!is_so)
        printf("\n    %s: wanted %d '%s', got %d '%s' '%s'\n", hosts ? hosts : "-", code, wanted, rc, rows_words(&opts.hosts), said);
    hosts_free(&opts.hosts);
    free(opts.allocation);
}

static void options_take_precedence(void)
{
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-3]", "SLURM_TASKS_PER_NODE=2(x2),1", "SLURMD_NODENAME=n1", NULL);
    narrows(NULL, 0, "*n1:2 n2:2 n3:1");
    narrows("n2", 0, "n2:2");
    narrows("n3,n1", 0, "n3:1 *n1:2");
    narrows("n2:7,n1:1", 0, "n2:7 *n1:1");
    narrows("n2,n2,n2", 0, "n2:3");
    narrows("n[2-3]", 0, "n2:2 n3:1");
    narrows("localhost", 0, "*n1:2");
    narrows("n2.cluster.dom", 0, "n2:2");
    narrows("n4", 2, "host n4 is not in Slurm's allocation 7");
    narrows("n1,n4", 2, "host n4 is not in");
    environment_is("SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=n[1-3]", "SLURM_TASKS_PER_NODE=2(x2),1", NULL);
    narrows("localhost", 2, "host localhost is not in Slurm's allocation 7"); /* a login node */
    environment_is("LSB_JOBID=3", "LSB_HOSTS=h1.dom h2.dom", NULL);
    narrows("h2", 0, "h2.dom:1");
    narrows("h2.other", 2, "not in LSF's allocation 3");
    environment_is("FLUX_JOB_ID=f1", "FLUX_JOB_NNODES=2", NULL);
    narrows(NULL, 2, "has 2 nodes, and the environment does not hold their names");
    narrows("h1:2", 0, "h1:2");
    environment_is(NULL, NULL);
    narrows("h1:2,localhost", 0, "h1:2 *localhost:1");
    narrows(NULL, 0, "");
}

int main(void)
{
    char folder[] = "/tmp/weft-allocation-XXXXXX";

    if (!mkdtemp(folder) || chdir(folder) || CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("allocation", NULL, NULL);
    CU_add_test(suite, "lists of names", name_lists);
    CU_add_test(suite, "counts", counts);
    CU_add_test(suite, "Slurm", slurm);
    CU_add_test(suite, "PBS, Grid Engine, LSF: files", files);
    CU_add_test(suite, "LSF, Flux: variables", words);
    CU_add_test(suite, "options take precedence", options_take_precedence);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    char command[100];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command) || failed ? 1 : 0;
}
