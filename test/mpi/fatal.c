/* np: 1 : errors without a handler end the program with the class as exit code and a text of at most five lines */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Runs itself as a child process for each case: a singleton, outside the test's job. */
struct way {
    const char *name;
    int code; /* exit code; -1: any but 0 */
    const char *words[5];
};

static const struct way ways[] = {
    {"rank", MPI_ERR_RANK, {"MPI_Send", "MPI_COMM_WORLD", "MPI_ERR_RANK", "77", "MPI_ERRORS_ARE_FATAL"}},
    {"truncate", MPI_ERR_TRUNCATE, {"MPI_Wait", "rows", "MPI_ERR_TRUNCATE", "tag 5", NULL}},
    {"errors_abort", MPI_ERR_TAG, {"MPI_Send", "MPI_ERR_TAG", "MPI_ERRORS_ABORT", NULL}},
    {"abort", 7, {"MPI_Abort", "7", "printed before", NULL}},
    {"call", MPI_ERR_IO, {"MPI_Comm_call_errhandler", "MPI_ERR_IO", NULL}},
    {"before", -1, {"MPI_Comm_size", "before MPI_Init", NULL}},
    {"after", -1, {"MPI_Comm_size", "after MPI_Finalize", NULL}},
    {"twice", -1, {"MPI_Finalize", NULL}},
    {"again", -1, {"MPI_Init", NULL}},
    {"missing", MPI_ERR_UNSUPPORTED_OPERATION, {"MPI_Open_port", "MPI_ERR_UNSUPPORTED_OPERATION", NULL}},
};

static void misbehave(const char *name)
{
    int value = 0, two[2] = {0};
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm comm;
    MPI_Request req;
    if (!strcmp(name, "before"))
        MPI_Comm_size(MPI_COMM_WORLD, &value);
    MPI_Init(NULL, NULL);
    if (!strcmp(name, "rank")) {
        MPI_Send(&value, 1, MPI_INT, 77, 0, MPI_COMM_WORLD);
    } else if (!strcmp(name, "truncate")) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_name(comm, "rows");
        MPI_Irecv(&value, 1, MPI_INT, 0, 5, comm, &req);
        MPI_Send(two, 2, MPI_INT, 0, 5, comm);
        MPI_Wait(&req, MPI_STATUS_IGNORE);
    } else if (!strcmp(name, "errors_abort")) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
        MPI_Send(&value, 1, MPI_INT, 0, -3, MPI_COMM_WORLD);
    } else if (!strcmp(name, "abort")) {
        printf("printed before"); /* still in stdio's buffer */
        MPI_Abort(MPI_COMM_WORLD, 7);
    } else if (!strcmp(name, "call")) {
        MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_IO);
    } else if (!strcmp(name, "missing")) {
        MPI_Open_port(MPI_INFO_NULL, port);
    }
    MPI_Finalize();
    if (!strcmp(name, "after"))
        MPI_Comm_size(MPI_COMM_WORLD, &value);
    if (!strcmp(name, "twice"))
        MPI_Finalize();
    if (!strcmp(name, "again"))
        MPI_Init(NULL, NULL);
    _exit(0);
}

/* The launcher's variables must not reach the child: its environment holds only what programs need to start. */
static void start_alone(char *self, const char *name)
{
    static const char *const kept[] = {"PATH", "HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "ASAN_OPTIONS", "LSAN_OPTIONS"};
    char *variables[8] = {NULL}, *args[] = {self, (char *)name, NULL};
    int n = 0;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (getenv(kept[i]) && asprintf(&variables[n], "%s=%s", kept[i], getenv(kept[i])) > 0)
            n++;
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    execve("/proc/self/exe", args, variables);
    _exit(126);
}

static int run(char *self, const struct way *way)
{
    char text[8192];
    size_t length = 0;
    ssize_t got;
    int ends[2], status, lines = 0, bad = 0;
    pid_t child;
    if (pipe(ends) || (child = fork()) < 0) {
        perror("fatal: pipe or fork");
        return 1;
    }
    if (child == 0) {
        dup2(ends[1], 1);
        dup2(ends[1], 2);
        start_alone(self, way->name);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    text[length] = 0;
    waitpid(child, &status, 0);
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    bad |= !WIFEXITED(status) || (way->code < 0 ? WEXITSTATUS(status) == 0 : WEXITSTATUS(status) != way->code);
    bad |= lines < 1 || lines > 5;
    for (int i = 0; i < 5 && way->words[i]; i++)
        if (!strstr(text, way->words[i])) {
            fprintf(stderr, "%s: '%s' is not in the text\n", way->name, way->words[i]);
            bad = 1;
        }
    if (bad)
        fprintf(stderr, "%s: status 0x%x, exit code %d wanted, %d lines:\n%s", way->name, status, way->code, lines, text);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0;
    if (argc > 1)
        misbehave(argv[1]);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        bad += run(argv[0], &ways[i]);
    return bad != 0;
}
