/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts: host files, --host, and what resource managers write: node lists, counts, node files. The first letter chooses who has written
 * the rest: 'f' a host file, 'h' --host, 's' Slurm (node list, newline, tasks per node), 'p' PBS, 'g' Grid Engine, 'l' LSF; else it
 * is only expanded.
 */
#include <netdb.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/fuzz/fuzz.h"
#include "tools/mpirun/allocation.h"
#include "tools/mpirun/hostlist.h"
#include "tools/mpirun/report.h"

int report(int code, const char *format, ...)
{
    (void)format;
    return code;
}

/* Replaces the resolver: names are not looked up here. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    (void)name;
    (void)service;
    (void)hints;
    (void)found;
    return EAI_NONAME;
}

/* Of a job's ranks: a host list is never longer than what a job may use. */
static void list_check(const host_list *list)
{
    if (list->count > HOSTS_MAX)
        abort();
    for (uint32_t i = 0; i < list->count; i++)
        if (!list->rows[i].slots || strlen(list->rows[i].name) > 255)
            abort();
}

static void file_make(const char *text, char *path, size_t capacity, int *fd)
{
    size_t bytes = strlen(text);

    *fd = memfd_create("hosts", MFD_CLOEXEC);
    if (*fd < 0 || write(*fd, text, bytes) != (ssize_t)bytes)
        abort();
    snprintf(path, capacity, "/proc/self/fd/%d", *fd);
}

static int take(void *owner, const char *name)
{
    uint32_t *count = owner;

    return strlen(name) >= HOSTLIST_NAME_MAX || ++*count > 1000;
}

/* Reads an allocation that names its hosts by `variable`, a list or a file. */
static void allocation_check(const char *job, const char *variable, const char *value)
{
    allocation given;

    setenv(job, "1", 1);
    setenv(variable, value, 1);
    if (!allocation_read(&given))
        list_check(&given.hosts);
    allocation_free(&given);
    unsetenv(job);
    unsetenv(variable);
}

static void by_slurm(char *text)
{
    char *tasks = strchr(text, '\n');

    if (tasks)
        *tasks++ = '\0';
    if (!*text)
        return;
    setenv("SLURM_TASKS_PER_NODE", tasks ? tasks : "1", 1);
    setenv("SLURM_JOB_CPUS_PER_NODE", tasks ? tasks : "1", 1);
    allocation_check("SLURM_JOB_ID", "SLURM_JOB_NODELIST", text);
}

static void by_file(char kind, const char *text)
{
    host_list list = {0};
    char path[64];
    int fd;

    file_make(text, path, sizeof(path), &fd);
    if (kind == 'f' && !hosts_read(&list, "--hostfile", path))
        list_check(&list);
    if (kind == 'p')
        allocation_check("PBS_JOBID", "PBS_NODEFILE", path);
    if (kind == 'g')
        allocation_check("JOB_ID", "PE_HOSTFILE", path);
    hosts_free(&list);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    host_list list = {0};
    uint32_t counts[64], count = 0;

    if (size < 2 || size > 20000)
        return 0;
    char *text = fuzz_text(data + 1, size - 1);
    switch (*data) {
    case 'f': case 'p': case 'g':
        by_file((char)*data, text);
        break;
    case 's':
        by_slurm(text);
        break;
    case 'l':
        if (*text)
            allocation_check("LSB_JOBID", "LSB_MCPU_HOSTS", text);
        break;
    case 'h':
        if (!hosts_add(&list, "--host", text))
            list_check(&list);
        break;
    default:
        hostlist_each(text, take, &count);
        if (allocation_counts(text, counts, 64) > 64)
            abort();
    }
    hosts_free(&list);
    free(text);
    return 0;
}
