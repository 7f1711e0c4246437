/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot: selects how this process joins its job: WEFT_BOOT of Weft's mpirun first, then the PMIx or PMI server of another launcher, then
 * singleton. One task of several without a server is an error: n separate singletons would give wrong results silently.
 */
#include "launch/boot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu_count.h"
#include "base/status.h"
#include "launch/boot_internal.h"
#include "launch/pmi.h"

weft_boot *(*weft_boot_hook)(void);
static weft_boot_state own_state = {.at_exit = atexit};
weft_boot_state *weft_boot_now = &own_state;

void weft_boot_host(char *host, size_t capacity)
{
    if (gethostname(host, capacity) || !*host)
        snprintf(host, capacity, "localhost");
    host[capacity - 1] = '\0';
}

bool weft_boot_is_oversubscribed(uint32_t local, bool is_bound)
{
    if (is_bound) /* each rank has its own CPUs: this affinity does not cover the other ranks' */
        return weft_cpu_count_quota() > 0 && (uint32_t)weft_cpu_count_quota() < local;
    return (uint32_t)weft_cpu_count() < local;
}

void weft_boot_begin(weft_boot *boot)
{
    if (boot->has_segment) {
        weft_rank_page *page = weft_segment_rank(&boot->segment, boot->local_rank);
        atomic_store(&page->pid, (uint32_t)getpid());
        atomic_store(&page->state, WEFT_RANK_INIT);
    }
    boot->oversubscribed = weft_boot_is_oversubscribed(boot->local_size, false);
}

void weft_boot_abort_parted(weft_boot *boot, int exit_code)
{
    if (boot->has_segment) {
        atomic_store(&weft_segment_rank(&boot->segment, boot->local_rank)->state, WEFT_RANK_DEAD);
        for (uint32_t i = 0; i < boot->local_size; i++)
            weft_page_wake(weft_segment_rank(&boot->segment, i));
    }
    _exit(exit_code);
}

/* True if the environment names a PMIx server of a namespace other than `own_nspace` (NULL: of any): that of a launcher started below
 * Weft's mpirun. (Weft's mpirun removes PMI_FD and the like from its ranks' environment.) */
static bool pmix_is_in_env(const char *own_nspace)
{
    const char *name = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK");

    return name && *name && rank && *rank && (!own_nspace || strcmp(name, own_nspace));
}

/* True if PMI_FD is the one that Weft's mpirun offers to programs of other MPIs. */
static bool is_offered_pmi(void)
{
    const char *mark = getenv(WEFT_BOOT_ENV_PMI_NAME), *fd = getenv("PMI_FD");
    unsigned long long inode;
    struct stat stat;
    int number, end = 0;

    if (!mark || !fd || sscanf(mark, "%d:%llu%n", &number, &inode, &end) != 2 || mark[end] || number != atoi(fd))
        return false;
    return fstat(number, &stat) || stat.st_ino == inode; /* a wrapper may have closed it */
}

static int task_without_server(const char *seen, const char *instead)
{
    return weft_fail(WEFT_E_OTHER,
                     "this process is one of several (%s), but has no launcher's server (none of PMIX_NAMESPACE, PMI_FD and PMI_PORT "
                     "is set). Start it by %s%sWeft's own mpirun. To run it alone, unset those variables",
                     seen, instead ? instead : "", instead ? ", or by " : "");
}

/* Servers of other launchers. An open PMI connection wins over a PMIx name: PMIx launchers close inherited descriptors, but a PMI
 * launcher below a PMIx one passes its environment on. If Weft's mpirun offers both, PMIx is preferred, as it has more data. An
 * unreachable PMI server is ignored in a job of one. */
static int start_by_env(weft_boot **boot)
{
    enum weft_pmi_env env = weft_pmi_env_read();
    const char *size = getenv("PMI_SIZE"), *instead;
    char seen[256];

    if (env == WEFT_PMI_ENV_OPEN && !(is_offered_pmi() && pmix_is_in_env(NULL)))
        return weft_boot_by_pmi(boot);
    if (pmix_is_in_env(NULL))
        return weft_boot_by_pmix(boot);
    if (env == WEFT_PMI_ENV_NAMED && !(getenv("PMI_FD") && size && !strcmp(size, "1")))
        return weft_boot_by_pmi(boot);
    if (weft_task_env_find(seen, sizeof(seen), &instead))
        return task_without_server(seen, instead);
    return weft_boot_singleton(boot);
}

int weft_boot_start(weft_boot **boot)
{
    const char *text = getenv(WEFT_BOOT_ENV_NAME);
    bool has_env = text && *text;
    weft_boot_env env;

    *boot = NULL;
    if (weft_boot_hook && (*boot = weft_boot_hook()))
        return 0;
    if (has_env) {
        if (!weft_boot_env_parse(text, &env))
            return weft_fail(WEFT_E_OTHER,
                             "%s=%s is not of the format of this version: use mpirun and library of one version, or unset it",
                             WEFT_BOOT_ENV_NAME, text);
        if (!pmix_is_in_env(env.name) && (weft_pmi_env_read() == WEFT_PMI_ENV_NONE || is_offered_pmi())) {
            int rc = weft_boot_by_mpirun(&env, boot);
            /* a rank's child: the step named in the environment is its parent's */
            return rc == WEFT_AGAIN ? weft_boot_singleton(boot) : rc;
        }
    }
    return start_by_env(boot);
}
