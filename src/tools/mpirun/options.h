/* SPDX-License-Identifier: BSD-3-Clause
 *
 * options: what the user asked of mpirun, as data. Read once by main; nobody changes it after.
 */
#ifndef WEFT_MPIRUN_OPTIONS_H
#define WEFT_MPIRUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/hosts.h"

enum bind_unit { BIND_AUTO, BIND_NONE, BIND_HWTHREAD, BIND_CORE, BIND_NUMA, BIND_SOCKET };
enum pmix_mode { PMIX_MODE_AUTO, PMIX_MODE_ALWAYS, PMIX_MODE_NEVER };
enum stdin_to { STDIN_ALL = -2, STDIN_NONE = -1 }; /* else a rank */

/* NAME=VALUE. */
typedef struct env_edit {
    char *text;
} env_edit;

/* One program of the job: what stands between two ':'. */
typedef struct app {
    uint32_t count, first; /* its ranks are first .. first + count - 1 */
    uint32_t per_node;     /* -N: on each host in turn; 0 = not said */
    bool is_counted;       /* -n was given */
    char **argv;           /* points into main's argv, NULL-terminated */
    const char *wdir;      /* NULL: ours */
    env_edit *edits;
    uint32_t edit_count;
    const char *env_list;  /* names to pass, comma separated; NULL: all */
    bool env_none;
    char *path;            /* the program as found; see program.c */
    bool is_ours;          /* linked with libmpi_abi */
    bool is_foreign;       /* linked with another MPI, or with PMIx itself */
    bool is_mpich;         /* ... with MPICH's, which as a rule knows no PMIx */
    bool is_open;          /* ... with Open MPI's */
    bool has_asan;         /* needs libasan, which must be the first library of all */
} app;

typedef struct options {
    app *apps;
    uint32_t app_count;
    uint32_t ranks;        /* of all apps; map.c counts them */
    env_edit *edits;       /* for every app */
    uint32_t edit_count;
    const char *env_list;
    bool env_none;
    bool is_tagged, is_bind_reported, is_verbose;
    const char *output;    /* prefix of files for the ranks' output; NULL: ours */
    int stdin_to;
    double timeout_s;      /* 0: none */
    enum bind_unit bind;
    enum bind_unit map;    /* BIND_AUTO: next to each other */
    uint32_t per_rank;     /* cores, or hardware threads, that each rank gets; 0: nobody said */
    enum pmix_mode pmix;
    host_list hosts;       /* who may take ranks; without has_hosts this machine */
    host_list file_hosts;  /* of these, --host chooses some; options_parse makes one list of both */
    bool has_hosts;
    bool is_by_node;       /* ranks go to the hosts in turn */
    const char *rankfile, *agent; /* NULL: none; ssh */
    uint32_t fanout;              /* daemons that one process starts at most; 0: tree.h's */
    char **slots;          /* [ranks] the CPUs that a rankfile names (cpuslot.h), NULL: it names none; NULL: none at all */
    char *allocation;      /* "Slurm's allocation 17", which gave the hosts; NULL: none did */
    bool is_by_srun;       /* one srun starts all daemons */
} options;

/* 0, or the exit code to end with (help and version: 0 with apps == NULL). Says what is wrong on stderr. */
int options_parse(int argc, char **argv, options *opts);
void options_free(options *opts);

/* One line "mpirun: ..." on stderr, by one write, or to complain_to. Gives `code` back. */
int complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* NULL, or takes the texts instead where it returns true (a daemon's: sends them to the head; the head's: behind output that waits). */
extern bool (*complain_to)(const char *text);

#define RANKS_MAX 65536 /* of a job */

extern const char help_text[];
/* WEFT_LAUNCH_FANOUT; 0: unset, or no such number, which is said. */
uint32_t fanout_wanted(void);

#endif
