/* SPDX-License-Identifier: BSD-3-Clause
 *
 * info_env: the info object MPI_INFO_ENV, and MPI_Info_create_env (MPI 5.0 11.2.1, chapter 10). Any thread, any time.
 * The keys describe how this process was started: command, argv, maxprocs, host, arch, wdir, mpi_initial_errhandler and
 * mpi_memory_alloc_kinds; unknown values are omitted. MPI_INFO_ENV is valid from MPI_Init on (11.3); a program that uses it before lacks
 * maxprocs there, under launchers that do not pass it, until a world is open.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/status.h"
#include "core/world.h"
#include "mpi/calls.h"
#include "mpi/info.h"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static weft_info *env; /* NULL: not built yet; set once */

/* Sets a pair; a value that is too long is cut. */
static int add(weft_info *info, const char *key, const char *value)
{
    char text[WEFT_INFO_VALUE_BYTES];
    snprintf(text, sizeof text, "%s", value);
    return weft_info_set(info, key, text);
}

/* The words after the first, separated by blanks, cut at MPI_MAX_INFO_VAL bytes. */
static int add_words(weft_info *info, int argc, char **argv)
{
    char text[WEFT_INFO_VALUE_BYTES] = "";
    size_t used = 0;
    int rc = add(info, "command", argv[0]);
    for (int i = 1; i < argc && argv[i] && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 1 ? " " : "", argv[i]);
    return rc ? rc : weft_info_set(info, "argv", text);
}

/* Command and arguments from /proc/self/cmdline. */
static int add_command(weft_info *info)
{
    char text[4 * MPI_MAX_INFO_VAL + 1], *words[MPI_MAX_INFO_VAL + 1]; /* longer lists end in what is cut off anyway */
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC), count = 0;
    ssize_t bytes = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    if (bytes <= 0)
        return 0;
    text[bytes] = 0;
    for (char *word = text; word < text + bytes && count <= MPI_MAX_INFO_VAL; word += strlen(word) + 1)
        words[count++] = word;
    return add_words(info, count, words);
}

static int add_maxprocs(weft_info *info)
{
    const char *given = getenv("WEFT_BOOT_MAXPROCS"); /* mpirun's -n of this program */
    char text[24];
    if (given && *given)
        return add(info, "maxprocs", given);
    if (!weft_world_now)
        return 0;
    snprintf(text, sizeof text, "%u", weft_world_now->boot->size);
    return add(info, "maxprocs", text);
}

/* What mpirun's options or the environment ask for (MPI 5.0 11.8.4). */
static int add_requests(weft_info *info)
{
    static const char *const handlers[] = {"mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"};
    int rc = getenv("WEFT_INITIAL_ERRHANDLER") ? add(info, "mpi_initial_errhandler", handlers[weft_knob.initial_errhandler]) : 0;
    const char *kinds = getenv("WEFT_MEMORY_ALLOC_KINDS");
    return rc || !kinds ? rc : add(info, "mpi_memory_alloc_kinds", kinds);
}

static int add_place(weft_info *info)
{
    struct utsname system;
    char directory[WEFT_INFO_VALUE_BYTES];
    int rc = 0;
    if (uname(&system) == 0) {
        rc = add(info, "host", system.nodename);
        rc = rc ? rc : add(info, "arch", system.machine);
    }
    if (!rc && getcwd(directory, sizeof directory))
        rc = weft_info_set(info, "wdir", directory);
    return rc;
}

/* An info with all keys; NULL: out of memory. */
static weft_info *build(int argc, char **argv)
{
    weft_info *info = weft_info_new();
    int rc;
    if (!info)
        return NULL;
    rc = argc > 0 && argv && argv[0] ? add_words(info, argc, argv) : add_command(info);
    rc = rc ? rc : add_maxprocs(info);
    rc = rc ? rc : add_place(info);
    rc = rc ? rc : add_requests(info);
    if (rc) {
        weft_info_drop(info);
        return NULL;
    }
    return info;
}

void weft_info_env_open(int argc, char **argv)
{
    char value[WEFT_INFO_VALUE_BYTES];
    pthread_mutex_lock(&guard);
    if (!env) {
        env = build(argc, argv);
        if (env)
            env->is_constant = true;
    } else if (weft_world_now && !weft_info_find(env, "maxprocs", value)) { /* it was used before */
        env->is_constant = false;
        add_maxprocs(env);
        env->is_constant = true;
    }
    pthread_mutex_unlock(&guard);
}

weft_info *weft_info_env(void)
{
    weft_info_env_open(0, NULL);
    return env;
}

int weft_mpi_info_create_env(int argc, char *argv[], MPI_Info *info)
{
    weft_info *made = build(argc, argv);
    if (!made)
        return weft_fail(WEFT_E_NOMEM, "no memory for the info of the environment");
    *info = made;
    return 0;
}
