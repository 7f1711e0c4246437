/* SPDX-License-Identifier: BSD-3-Clause
 *
 * signals: see signals.h. No SA_RESTART, so that a signal interrupts a write to a stopped terminal. The state is file-wide because a
 * handler gets no argument.
 */
#include "tools/mpirun/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/macros.h"

static const int caught[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};
static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGTTOU};
static struct sigaction caught_before[weft_count(caught)], ignored_before[weft_count(ignored)];
static sigset_t mask_before, mask_held;
static int ends[2] = {-1, -1};

static void on_signal(int sig)
{
    unsigned char byte = (unsigned char)sig;
    int saved = errno;

    if (write(ends[1], &byte, 1) < 0) { /* full: the loop will wake anyway */
    }
    errno = saved;
}

int signals_open(void)
{
    struct sigaction take = {.sa_handler = on_signal}, drop = {.sa_handler = SIG_IGN};

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return -1;
    sigfillset(&take.sa_mask);
    for (size_t i = 0; i < weft_count(caught); i++) {
        sigaction(caught[i], NULL, &caught_before[i]);
        /* ignored signals stay ignored (nohup, shells without job control) */
        if (caught_before[i].sa_handler != SIG_IGN || caught[i] == SIGCHLD)
            sigaction(caught[i], &take, NULL);
    }
    for (size_t i = 0; i < weft_count(ignored); i++)
        sigaction(ignored[i], &drop, &ignored_before[i]);
    sigprocmask(SIG_SETMASK, NULL, &mask_before);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    return ends[0];
}

int signals_next(void)
{
    unsigned char byte;

    return read(ends[0], &byte, 1) == 1 ? byte : 0;
}

void signals_hold(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask_held);
}

void signals_release(void)
{
    sigprocmask(SIG_SETMASK, &mask_held, NULL);
}

void signals_child(void)
{
    for (size_t i = 0; i < weft_count(caught); i++)
        sigaction(caught[i], &caught_before[i], NULL);
    for (size_t i = 0; i < weft_count(ignored); i++)
        sigaction(ignored[i], &ignored_before[i], NULL);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
}
