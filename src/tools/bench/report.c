/* SPDX-License-Identifier: BSD-3-Clause
 * report: see report.h. Text and JSON output.
 */
#include "report.h"

#include <stdio.h>
#include <string.h>

static const char *const units[] = {[BENCH_MICROSECONDS] = "us", [BENCH_GB_PER_S] = "GB/s", [BENCH_MILLIONS_PER_S] = "M/s",
                                    [BENCH_PERCENT] = "%"};

/* First line of MPI_Get_library_version, without characters that JSON would need escaped. */
static void library_name(char *out, size_t bytes)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n = 0;
    size_t at = 0;

    MPI_Get_library_version(text, &n);
    for (const char *p = text; *p && *p != '\n' && at + 1 < bytes; p++) {
        if (*p == '\t') {
            out[at++] = ' ';
        } else if (*p >= ' ' && *p != '"' && *p != '\\') {
            out[at++] = *p;
        }
    }
    out[at] = 0;
}

void bench_report_open(const bench_options *o, int ranks)
{
    char library[200], host[MPI_MAX_PROCESSOR_NAME + 1];
    int n = 0;

    library_name(library, sizeof library);
    MPI_Get_processor_name(host, &n);
    if (o->json) {
        printf("{\"program\": \"weft-bench\", \"library\": \"%s\", \"host\": \"%s\", \"ranks\": %d, "
               "\"rotate_bytes\": %ld, \"check\": %s,\n"
               " \"tests\": [",
               library, host, ranks, o->rotate_bytes, o->check ? "true" : "false");
    } else {
        printf("# weft-bench: %s, %d rank%s%s\n", library, ranks, ranks == 1 ? "" : "s",
               o->check ? ", every byte is checked" : "");
        if (o->rotate_bytes) {
            printf("# buffers rotate through %ld bytes\n", o->rotate_bytes);
        }
    }
}

void bench_report_test(const bench_options *o, const bench_test *t, int ranks, bool first)
{
    const char *unit = units[t->figure];

    if (o->json) {
        printf("%s\n  {\"test\": \"%s\", \"unit\": \"%s\", \"rows\": [", first ? "" : ",", t->name, unit);
        return;
    }
    printf("\n# %s: %s", t->name, t->help);
    if (t->pairs && ranks > 3) {
        printf(" (%d pairs at once)", ranks / 2);
    }
    printf("\n%-18s %11s %-4s %12s %12s %11s %8s\n", t->variants ? "# Case       Bytes" : "# Bytes", "Median", unit,
           "Min", "Max", "Iterations", "Samples");
}

static void row_label(const bench_case *c, char *label, size_t bytes)
{
    if (c->test->variants) {
        snprintf(label, bytes, "%-9s %8ld", c->test->variants[c->variant], c->bytes);
    } else {
        snprintf(label, bytes, "%ld", c->bytes);
    }
}

static void row_json(const bench_case *c, bool first)
{
    printf("%s\n    {\"bytes\": %ld", first ? "" : ",", c->bytes);
    if (c->test->variants) {
        printf(", \"case\": \"%s\"", c->test->variants[c->variant]);
    }
}

void bench_report_row(const bench_case *c, const bench_result *r, int failures, bool first)
{
    char label[48];

    if (c->options->json) {
        row_json(c, first);
        printf(", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g, \"iterations\": %ld, \"samples\": %d, \"failures\": %d}",
               r->median, r->min, r->max, r->iterations, r->samples, failures);
    } else {
        row_label(c, label, sizeof label);
        printf("%-18s %11.3f %-4s %12.3f %12.3f %11ld %8d%s\n", label, r->median, "", r->min, r->max, r->iterations,
               r->samples,
               failures ? "  WRONG DATA" : "");
    }
    fflush(stdout);
}

void bench_report_left_out(const bench_case *c, const char *why, bool first)
{
    char label[48];

    if (c->options->json) {
        row_json(c, first);
        printf(", \"left_out\": \"%s\"}", why);
    } else {
        row_label(c, label, sizeof label);
        printf("%-18s left out: %s\n", label, why);
    }
    fflush(stdout);
}

void bench_report_test_end(const bench_options *o)
{
    if (o->json) {
        printf("\n  ]}");
    }
}

void bench_report_close(const bench_options *o, int failures, int no_memory)
{
    if (o->json) {
        printf("\n ],\n \"failures\": %d, \"out_of_memory\": %d}\n", failures, no_memory);
    } else if (failures) {
        printf("\n# WRONG DATA: %d failures, the first of each row on stderr\n", failures);
    } else if (o->check) {
        printf("\n# all received data is correct\n");
    }
    if (no_memory && !o->json) {
        printf("# OUT OF MEMORY: %d row%s left out, because a rank could not allocate its buffers\n", no_memory, no_memory == 1 ? "" : "s");
    }
    fflush(stdout);
}
