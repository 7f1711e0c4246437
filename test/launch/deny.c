/* SPDX-License-Identifier: BSD-3-Clause
 *
 * deny: runs a command in which the named system calls give EPERM, as containers' seccomp profiles make them: what Weft would
 * like to use may be refused anywhere. Called by the script `containers`.
 *   deny CALL... -- COMMAND [ARGUMENT...]     77: this system filters no calls
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    {"process_vm_readv", SYS_process_vm_readv}, {"process_vm_writev", SYS_process_vm_writev}, {"membarrier", SYS_membarrier},
    {"memfd_create", SYS_memfd_create}, {"sched_setaffinity", SYS_sched_setaffinity}, {"fallocate", SYS_fallocate},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

static int number_of(const char *name, unsigned *number)
{
    for (int i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, name) == 0) {
            *number = calls[i].number;
            return 0;
        }
    return -1;
}

int main(int argc, char **argv)
{
    struct sock_filter code[2 * CALLS + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    struct sock_fprog program = {.len = 1, .filter = code};
    int at = 1;

    for (; at < argc && strcmp(argv[at], "--") && at <= CALLS; at++) {
        unsigned number;
        if (number_of(argv[at], &number)) {
            fprintf(stderr, "deny: no call %s\n", argv[at]);
            return 2;
        }
        code[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (at + 1 >= argc || strcmp(argv[at], "--")) {
        fprintf(stderr, "usage: deny CALL... -- COMMAND [ARGUMENT...]\n");
        return 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 77;
    execvp(argv[at + 1], argv + at + 1);
    perror(argv[at + 1]);
    return 127;
}
