/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts: see hosts.h. A name is this machine's if it is a loopback name, the host name with or without its domain, or resolves to an
 * address of a local network device. Names that match literally are not resolved.
 */
#include "tools/mpirun/hosts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macros.h"
#include "tools/mpirun/hostlist.h"
#include "tools/mpirun/report.h"

/* Source of a text, for messages. */
typedef struct source {
    const char *what; /* an option or a file */
    uint32_t line;    /* 0: none */
} source;

static int refuse(const source *at, const char *why, const char *text)
{
    if (at->line)
        return report(2, "%s:%u: %s: '%s'", at->what, at->line, why, text);
    return report(2, "%s: %s: '%s'", at->what, why, text);
}

static bool is_address_of(const struct sockaddr *a, const struct sockaddr *b)
{
    if (!a || !b || a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return !memcmp(&((const struct sockaddr_in *)a)->sin_addr, &((const struct sockaddr_in *)b)->sin_addr, sizeof(struct in_addr));
    return a->sa_family == AF_INET6 &&
           !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
}

static bool resolves_here(const char *name)
{
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    struct ifaddrs *local = NULL;
    bool is_here = false;

    if (getaddrinfo(name, NULL, &hint, &found) == 0 && getifaddrs(&local) == 0)
        for (struct addrinfo *a = found; a && !is_here; a = a->ai_next)
            for (struct ifaddrs *o = local; o && !is_here; o = o->ifa_next)
                is_here = is_address_of(a->ai_addr, o->ifa_addr);
    if (found)
        freeaddrinfo(found);
    if (local)
        freeifaddrs(local);
    return is_here;
}

static bool name_matches_here(const char *name)
{
    static const char *const always[] = {"localhost", "127.0.0.1", "::1", "localhost.localdomain"};
    char host[256] = "";

    for (size_t i = 0; i < weft_count(always); i++)
        if (!strcasecmp(name, always[i]))
            return true;
    gethostname(host, sizeof(host) - 1);
    size_t length = strcspn(host, ".");
    return !strcasecmp(name, host) || (strlen(name) == length && !strncasecmp(name, host, length));
}

static bool name_is_here(const char *name)
{
    return name_matches_here(name) || resolves_here(name);
}

static host_row *row_find(const host_list *self, const char *name)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (!strcasecmp(self->rows[i].name, name))
            return &self->rows[i];
    return NULL;
}

/* Adds a row, or slots to an existing one; slots 0: not given. */
static int row_add(host_list *self, const source *at, const char *name, uint32_t slots)
{
    host_row *row = row_find(self, name);

    if (row) {
        row->slots += slots ? slots : 1; /* both at most HOST_RANKS_MAX */
        row->slots = row->slots < HOST_RANKS_MAX ? row->slots : HOST_RANKS_MAX;
        row->is_counted = true;
        return 0;
    }
    if (self->count == HOSTS_MAX)
        return refuse(at, "more than 4160 hosts", name);
    host_row *more = realloc(self->rows, (self->count + 1) * sizeof(*more));
    if (!more)
        return report(1, "out of memory");
    self->rows = more;
    more[self->count] = (host_row){.name = strdup(name), .slots = slots ? slots : 1, .is_counted = slots != 0};
    return more[self->count++].name ? 0 : report(1, "out of memory");
}

/* Rejects names that ssh would take as an option ('-') or that a remote shell would interpret. */
static bool is_name(const char *text)
{
    size_t length = strlen(text);
    struct in6_addr six;

    if (!length || length > 255 || *text == '-' || (strchr(text, ':') && inet_pton(AF_INET6, text, &six) != 1))
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr(".-_:@%", *text))
            return false;
    return true;
}

static int slots_read(const source *at, const char *text, const char *whole, uint32_t *slots)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (end == text || *end || *text == '-' || value < 1 || value > HOST_RANKS_MAX)
        return refuse(at, "not a number of ranks from 1 to 4096", whole);
    *slots = (uint32_t)value;
    return 0;
}

/* Destination of the names of one word. */
typedef struct expansion {
    host_list *hosts;
    const source *at;
    uint32_t slots;
} expansion;

static int name_add(void *owner, const char *name)
{
    expansion *self = owner;

    return is_name(name) ? row_add(self->hosts, self->at, name, self->slots) : refuse(self->at, "not a host name", name);
}

static int names_expand(host_list *self, const source *at, const char *text, uint32_t slots)
{
    expansion one = {self, at, slots};
    int rc = hostlist_each(text, name_add, &one);

    if (rc == HOSTLIST_TOO_MANY)
        return refuse(at, "more than 65536 names", text);
    return rc == HOSTLIST_MALFORMED ? refuse(at, "a range is written as n[1-4] or n[01-03,7]", text) : rc;
}

/* Adds "h", "h:2", "n[1-4]:2". "[fe80::1]:2" is not supported: an IPv6 address takes no slots. */
static int entry_add(host_list *self, const source *at, char *word, uint32_t slots)
{
    char whole[300];
    char *colon = strrchr(word, ':');

    snprintf(whole, sizeof(whole), "%s", word);
    if (colon && colon == strchr(word, ':')) { /* more than one colon: an IPv6 address */
        int rc = slots_read(at, colon + 1, whole, &slots);
        if (rc)
            return rc;
        *colon = '\0';
    }
    return names_expand(self, at, word, slots);
}

int hosts_add(host_list *self, const char *option, const char *text)
{
    source at = {.what = option};
    char *copy = strdup(text), *word = copy;
    int rc = copy ? 0 : report(1, "out of memory");

    while (!rc && word) { /* commas inside brackets do not separate */
        char *end = word;
        for (bool is_inside = false; *end && (is_inside || *end != ','); end++)
            is_inside = *end == '[' || (is_inside && *end != ']');
        char *next = *end ? end + 1 : NULL;
        *end = '\0';
        rc = entry_add(self, &at, word, 0);
        word = next;
    }
    free(copy);
    return rc;
}

static int line_read(host_list *self, const source *at, char *line)
{
    char *save = NULL, *name, *word;
    uint32_t slots = 0, max;
    int rc = 0;

    line[strcspn(line, "#\r\n")] = '\0';
    name = strtok_r(line, " \t", &save);
    if (!name)
        return 0;
    while (!rc && (word = strtok_r(NULL, " \t", &save))) {
        char *value = strchr(word, '=');
        size_t length = value ? (size_t)(value - word) : strlen(word);
        if (value && length == 5 && !strncmp(word, "slots", 5))
            rc = slots_read(at, value + 1, word, &slots);
        else if (value && (!strncmp(word, "max_slots", length) || !strncmp(word, "max-slots", length)) && length == 9)
            rc = slots_read(at, value + 1, word, &max); /* checked but not used: more ranks than slots are allowed */
        else
            rc = refuse(at, "only slots=N and max_slots=N may follow a host name", word);
    }
    return rc ? rc : entry_add(self, at, name, slots);
}

int hosts_read(host_list *self, const char *option, const char *path)
{
    source at = {.what = path};
    char *line = NULL;
    size_t capacity = 0;
    uint32_t before = self->count;
    int rc = 0;
    FILE *file = strcmp(path, "-") ? fopen(path, "re") : NULL;

    if (!file)
        return report(2, "%s: cannot read %s: %s", option, path,
                      strcmp(path, "-") ? strerror(errno) : "standard input is reserved for the ranks");
    while (!rc && getline(&line, &capacity, file) >= 0) {
        at.line++;
        rc = line_read(self, &at, line);
    }
    if (!rc && ferror(file))
        rc = report(2, "%s: cannot read %s: %s", option, path, strerror(errno));
    if (!rc && self->count == before)
        rc = report(2, "%s: %s lists no host", option, path);
    free(line);
    fclose(file);
    return rc;
}

int hosts_add_expanded(host_list *self, const char *from, const char *text, uint32_t slots)
{
    source at = {.what = from};

    return names_expand(self, &at, text, slots);
}

/* Merges the rows of this machine. */
static void local_rows_merge(host_list *self)
{
    host_row *first = NULL;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < self->count; i++) {
        host_row *row = &self->rows[i];
        if (first && row->is_here) {
            first->slots += row->slots;
            first->is_counted = true;
            free(row->name);
            continue;
        }
        self->rows[kept] = *row;
        if (row->is_here)
            first = &self->rows[kept];
        kept++;
    }
    self->count = kept;
}

void hosts_resolve(host_list *self, bool has_one_name)
{
    bool is_found = false;

    for (uint32_t i = 0; i < self->count; i++)
        if (!self->rows[i].is_resolved)
            is_found |= self->rows[i].is_here = name_matches_here(self->rows[i].name);
    for (uint32_t i = 0; i < self->count; i++) {
        host_row *row = &self->rows[i];
        if (!row->is_resolved && !row->is_here && !(is_found && has_one_name))
            row->is_here = resolves_here(row->name);
        row->is_resolved = true;
    }
    local_rows_merge(self);
}

bool hosts_are_alike(const char *a, const char *b)
{
    size_t short_a = strcspn(a, "."), short_b = strcspn(b, ".");

    if (!strcasecmp(a, b))
        return true;
    return short_a == short_b && (!a[short_a] || !b[short_b]) && !strncasecmp(a, b, short_a);
}

host_row *hosts_find(const host_list *self, const char *name)
{
    host_row *row = row_find(self, name);

    for (uint32_t i = 0; i < self->count && !row; i++)
        if (hosts_are_alike(self->rows[i].name, name))
            row = &self->rows[i];
    if (!row && name_is_here(name))
        for (uint32_t i = 0; i < self->count && !row; i++)
            if (self->rows[i].is_here)
                row = &self->rows[i];
    return row;
}

static int row_intersect(const host_list *given, const host_row *wanted, host_list *to, const char *what, const char *help)
{
    const host_row *row = hosts_find(given, wanted->name);
    uint32_t before = to->count;
    int rc;

    if (!row)
        return report(2, "host %s is not in %s (%s)", wanted->name, what, help);
    rc = hosts_add_expanded(to, "--host", row->name, wanted->is_counted ? wanted->slots : row->slots);
    if (!rc && to->count > before) {
        to->rows[before].is_here = row->is_here;
        to->rows[before].is_resolved = true;
    }
    return rc;
}

int hosts_intersect(const host_list *given, host_list *wanted, const char *what, const char *help)
{
    host_list kept = {0};
    int rc = 0;

    for (uint32_t i = 0; i < wanted->count && !rc; i++)
        rc = row_intersect(given, &wanted->rows[i], &kept, what, help);
    hosts_free(wanted);
    *wanted = kept;
    return rc;
}

void hosts_free(host_list *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        free(self->rows[i].name);
    free(self->rows);
    *self = (host_list){0};
}
