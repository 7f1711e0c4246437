/* SPDX-License-Identifier: BSD-3-Clause
 *
 * allocation: see allocation.h. Managers are tried in the order of a table; the first that gave this job hosts is used.
 * An allocation that cannot be parsed is an error: the job must not run silently on one host of many.
 */
#include "tools/mpirun/allocation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/macros.h"
#include "tools/mpirun/report.h"

static const char *env_value(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static const char *env_value_or(const char *name, const char *older)
{
    const char *value = env_value(name);

    return value ? value : env_value(older);
}

static const char *env_text(const char *name)
{
    const char *value = getenv(name);

    return value ? value : "";
}

/* Parses a number of ranks; 0: malformed or too large. */
static uint32_t count_of(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    return end == text || *end || *text == '-' || value > HOST_RANKS_MAX ? 0 : (uint32_t)value;
}

int allocation_counts(const char *text, uint32_t *counts, uint32_t capacity)
{
    uint32_t count = 0;

    for (;;) {
        unsigned value, times = 1;
        int value_end = 0, times_end = 0;
        if (sscanf(text, "%6u%n(x%6u%n", &value, &value_end, &times, &times_end) < 1 || strspn(text, "0123456789") != (size_t)value_end)
            return -1;
        text += times_end ? times_end : value_end;
        if (times_end && *text++ != ')')
            return -1;
        if (!times || times > capacity - count || value > HOST_RANKS_MAX)
            return -1;
        while (times--)
            counts[count++] = value;
        if (!*text)
            return (int)count;
        if (*text++ != ',')
            return -1;
    }
}

/* Sets the slots of all hosts from a Slurm variable. False: it is unset or for other hosts (those of a step). */
static bool slurm_slots(host_list *hosts, const char *name, uint32_t per_slot)
{
    uint32_t counts[HOSTS_MAX];
    const char *text = env_value(name);

    if (!text || allocation_counts(text, counts, HOSTS_MAX) != (int)hosts->count)
        return false;
    for (uint32_t i = 0; i < hosts->count; i++)
        hosts->rows[i].slots = counts[i] / per_slot ? counts[i] / per_slot : 1;
    return true;
}

/* Only SLURMD_NODENAME identifies this node: several Slurm nodes may share a machine, under names without an address. Outside of a step
 * (a shell under salloc) no node is this machine: Slurm would not account ranks started here to the job. */
static int slurm_read(allocation *self)
{
    const char *list = env_value_or("SLURM_JOB_NODELIST", "SLURM_NODELIST");
    const char *here = env_value("SLURMD_NODENAME"), *cpus = env_value("SLURM_CPUS_PER_TASK");
    uint32_t per_task = cpus ? count_of(cpus) : 1;
    int rc = hosts_add_expanded(&self->hosts, "SLURM_JOB_NODELIST", list, 1);

    if (rc)
        return rc;
    if (!slurm_slots(&self->hosts, "SLURM_TASKS_PER_NODE", 1) &&
        !slurm_slots(&self->hosts, "SLURM_JOB_CPUS_PER_NODE", per_task ? per_task : 1))
        return report(2, "%s: neither SLURM_TASKS_PER_NODE '%s' nor SLURM_JOB_CPUS_PER_NODE '%s' matches the %u hosts of '%s'", self->what,
                        env_text("SLURM_TASKS_PER_NODE"), env_text("SLURM_JOB_CPUS_PER_NODE"), self->hosts.count, list);
    for (uint32_t i = 0; i < self->hosts.count; i++) {
        host_row *row = &self->hosts.rows[i];
        row->is_here = here && !strcmp(here, row->name);
        row->is_resolved = true;
    }
    return 0;
}

/* Reads lines of a host name and, with has_slots, an optional number of slots. */
static int file_read(host_list *hosts, const char *variable, bool has_slots)
{
    const char *path = env_value(variable);
    FILE *file = fopen(path, "re");
    char *line = NULL, from[300];
    size_t capacity = 0;
    int rc = 0;

    if (!file)
        return report(2, "%s: cannot read %s: %s (WEFT_ALLOCATION=none ignores it)", variable, path, strerror(errno));
    for (unsigned number = 1; !rc && getline(&line, &capacity, file) >= 0; number++) {
        char *save = NULL, *name = strtok_r(line, " \t\r\n", &save), *count = name ? strtok_r(NULL, " \t\r\n", &save) : NULL;
        uint32_t slots = has_slots && count ? count_of(count) : 1;
        snprintf(from, sizeof(from), "%s: %s:%u", variable, path, number);
        if (name && !slots)
            rc = report(2, "%s: the host's name must be followed by a number of slots, not '%s'", from, count);
        else if (name)
            rc = hosts_add_expanded(hosts, from, name, slots);
    }
    if (!rc && ferror(file))
        rc = report(2, "%s: cannot read %s: %s", variable, path, strerror(errno));
    else if (!rc && !hosts->count)
        rc = report(2, "%s: %s lists no host", variable, path);
    free(line);
    fclose(file);
    return rc;
}

/* Reads "a 2 b 4" (has_slots) or "a a b". */
static int blank_list_read(host_list *hosts, const char *variable, bool has_slots)
{
    char *copy = strdup(env_value(variable)), *save = NULL;
    int rc = copy ? 0 : report(1, "out of memory");

    for (char *name = copy ? strtok_r(copy, " ", &save) : NULL; name && !rc; name = strtok_r(NULL, " ", &save)) {
        char *count = has_slots ? strtok_r(NULL, " ", &save) : NULL;
        uint32_t slots = !has_slots ? 1 : count ? count_of(count) : 0;
        rc = slots ? hosts_add_expanded(hosts, variable, name, slots)
                   : report(2, "%s: no number of slots follows '%s'", variable, name);
    }
    free(copy);
    return rc;
}

static int pbs_read(allocation *self)
{
    return file_read(&self->hosts, "PBS_NODEFILE", false);
}

static int lsf_read(allocation *self)
{
    if (env_value("LSB_DJOB_HOSTFILE"))
        return file_read(&self->hosts, "LSB_DJOB_HOSTFILE", false);
    return env_value("LSB_MCPU_HOSTS") ? blank_list_read(&self->hosts, "LSB_MCPU_HOSTS", true)
                                       : blank_list_read(&self->hosts, "LSB_HOSTS", false);
}

static int sge_read(allocation *self)
{
    return file_read(&self->hosts, "PE_HOSTFILE", true);
}

/* Flux's environment holds the number of nodes, but not their names. */
static int flux_read(allocation *self)
{
    const char *tasks = env_value("FLUX_JOB_SIZE");
    uint32_t slots = tasks ? count_of(tasks) : 1;

    self->is_nameless = count_of(env_value("FLUX_JOB_NNODES")) != 1;
    if (self->is_nameless)
        return 0;
    return hosts_add_expanded(&self->hosts, "FLUX_JOB_NNODES", "localhost", slots ? slots : 1);
}

static const struct manager_row {
    const char *name;
    const char *job, *older_job; /* variables with the job's id; one must be set */
    const char *hosts[3];        /* variables with hosts; one must be set */
    int (*read)(allocation *self);
} managers[] = {
    {"Slurm", "SLURM_JOB_ID", "SLURM_JOBID", {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}, slurm_read},
    {"PBS", "PBS_JOBID", "PBS_ENVIRONMENT", {"PBS_NODEFILE"}, pbs_read},
    {"LSF", "LSB_JOBID", "LSB_BATCH_JID", {"LSB_DJOB_HOSTFILE", "LSB_MCPU_HOSTS", "LSB_HOSTS"}, lsf_read},
    {"Grid Engine", "JOB_ID", "SGE_TASK_ID", {"PE_HOSTFILE"}, sge_read},
    {"Flux", "FLUX_JOB_ID", "FLUX_URI", {"FLUX_JOB_NNODES"}, flux_read},
};

int allocation_read(allocation *self)
{
    const char *mode = env_value("WEFT_ALLOCATION");

    *self = (allocation){0};
    if (mode && !strcmp(mode, "none"))
        return 0;
    if (mode && strcmp(mode, "auto"))
        return report(2, "WEFT_ALLOCATION must be auto or none, not '%s'", mode);
    for (size_t m = 0; m < weft_count(managers); m++) {
        const struct manager_row *row = &managers[m];
        const char *job = env_value_or(row->job, row->older_job);
        bool has_hosts = false;
        for (size_t h = 0; h < weft_count(row->hosts) && row->hosts[h]; h++)
            has_hosts |= env_value(row->hosts[h]) != NULL;
        if (!job || !has_hosts)
            continue;
        snprintf(self->what, sizeof(self->what), "%s's allocation %.100s", row->name, job);
        int rc = row->read(self);
        self->manager = row->name;
        hosts_resolve(&self->hosts, true);
        return rc;
    }
    return 0;
}

void allocation_free(allocation *self)
{
    hosts_free(&self->hosts);
}

int allocation_apply(options *opts)
{
    allocation given;
    int rc = allocation_read(&given);

    if (!rc && given.is_nameless && !opts->has_hosts)
        rc = report(2, "%s has %s nodes, and the environment does not hold their names: give them by --host (or WEFT_ALLOCATION=none)",
                      given.what, env_text("FLUX_JOB_NNODES"));
    if (!rc && given.manager && !given.is_nameless) {
        if (opts->has_hosts) {
            rc = hosts_intersect(&given.hosts, &opts->hosts, given.what, "WEFT_ALLOCATION=none ignores the allocation");
        } else {
            opts->hosts = given.hosts;
            given.hosts = (host_list){0};
        }
        opts->has_hosts = true;
        opts->allocation = strdup(given.what);
        opts->is_by_srun = !strcmp(given.manager, "Slurm") && !(opts->agent && *opts->agent);
    }
    hosts_resolve(&opts->hosts, false);
    allocation_free(&given);
    return rc;
}
