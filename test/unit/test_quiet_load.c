/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_quiet_load: the handlers of a library that is loaded are taken back; those that the program has had, and those that it sets while
 * the library is loaded, stay.
 */
#include <CUnit/Basic.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quiet_load.h"

static char path[PATH_MAX + 64];

static void before(int number) { (void)number; }
static void other(int number) { (void)number; }
static void meanwhile(void) { signal(SIGUSR2, other); }

static void (*handler_of(int number))(int)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 ? action.sa_handler : NULL;
}

static void handlers_are_the_programs(void)
{
    char address[32];
    sigset_t mask;
    snprintf(address, sizeof address, "%llx", (unsigned long long)(uintptr_t)meanwhile);
    setenv("WEFT_TEST_MEANWHILE", address, 1);
    signal(SIGUSR1, before);
    signal(SIGUSR2, before);
    CU_ASSERT_PTR_NOT_NULL_FATAL(weft_quiet_load(path));
    CU_ASSERT(handler_of(SIGUSR1) == before);
    CU_ASSERT(handler_of(SIGUSR2) == other);
    CU_ASSERT(handler_of(SIGTERM) == SIG_DFL);
    CU_ASSERT(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0 && !sigismember(&mask, SIGUSR1));
}

static void says_what_is_missing(void) { CU_ASSERT_PTR_NULL(weft_quiet_load("/nonexistent/weft.so")); }

int main(int argc, char **argv)
{
    char here[PATH_MAX];
    unsigned failed;
    (void)argc;
    if (!realpath(argv[0], here) || CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    snprintf(path, sizeof path, "%s/../../.libs/handlers.so", dirname(here));
    CU_pSuite suite = CU_add_suite("quiet_load", NULL, NULL);
    CU_add_test(suite, "handlers-are-the-program's", handlers_are_the_programs);
    CU_add_test(suite, "says-what-is-missing", says_what_is_missing);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
