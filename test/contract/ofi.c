/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi: the contract suite over libfabric: its tcp on this host, and other providers that work here, so that more than one is honoured.
 * Each provider is a process of its own: libfabric is told once which it shall be. A program of its own because an empty poll
 * lets kernel and providers' threads run. Skipped (77) where libfabric offers nothing.
 *     ofi [-v] [provider [test]]
 */
#include <CUnit/Basic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "test/contract/rig.h"
#include "transports/ofi/ofi.h"

static const rig_row row = {.name = "ofi", .ops = &weft_ofi_ops, .seed = 41, .wants_fd = true};

/* The kernel carries the bytes: who found nothing gives it the CPU, and some microseconds when nothing comes for long. */
static int poll_kindly(weft_port *port, int budget)
{
    static uint32_t idle;
    int events = weft_ofi_ops.poll(port, budget);
    idle = events ? 0 : idle + 1;
    if (idle > 20 && idle % 16 == 0)
        usleep(2);
    else if (idle)
        sched_yield();
    return events;
}

static void make_kind(weft_port *port)
{
    static weft_port_ops kind;
    kind = *port->ops;
    kind.poll = poll_kindly;
    port->ops = &kind;
}

static void run_named(void) { rig_run_named(&row); }

static int run(const char *provider, const char *only, bool is_verbose)
{
    const char *why;
    unsigned failed;
    setenv("WEFT_OFI_PROVIDER", provider, 1);
    weft_knobs_load(true);
    why = weft_ofi_ops.absent();
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    rig_patch = make_kind;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    rig_add_rooms(CU_add_suite(*provider ? provider : "default", NULL, NULL), only, run_named);
    CU_basic_set_mode(is_verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

/* In a child, so that libfabric begins anew. */
static int run_apart(const char *provider, bool is_verbose)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        exit(run(provider, NULL, is_verbose));
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    static const char *const providers[] = {"tcp;ofi_rxm", "net", "sockets"};
    bool is_verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    int first = 1 + is_verbose, passed = 0, failed = 0;
    if (argc > first)
        return run(argv[first], argc > first + 1 ? argv[first + 1] : NULL, is_verbose);
    for (size_t i = 0; i < weft_count(providers); i++) {
        int rc = run_apart(providers[i], is_verbose);
        passed += rc == 0;
        failed += rc != 0 && rc != 77;
    }
    return failed ? 1 : passed ? 0 : 77;
}
