/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_server: lines that ranks send to mpirun's PMI server, and the keys that other hosts put. The first letter is the number of hosts, 1
 * or 2. Tabs separate what the two ranks of this host send in turn; a part that begins with '!' is instead the answer of the head to a
 * barrier.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "test/fuzz/fuzz.h"
#include "tools/mpirun/pmi_server.h"
#include "tools/mpirun/report.h"

#define RANKS 3
#define HERE 2 /* of them on this host */

int report(int code, const char *format, ...)
{
    (void)format;
    return code;
}

static void asked(void *owner, const pmix_msg *what)
{
    bool *is_gathering = owner;

    *is_gathering = true;
    refbuf_release(what->body);
}

static void aborted(void *owner, uint32_t rank, int code)
{
    (void)owner;
    (void)code;
    if (rank >= HERE)
        abort();
}

static void answer(pmi_server *server, const char *at, size_t bytes)
{
    pmix_msg done = {.kind = PMIX_MSG_DONE, .ticket = (uint64_t)1 << 63, .body = refbuf_copy(at, bytes)};

    if (!pmi_server_handle(server, &done))
        abort();
}

static void drain(int fd)
{
    char bytes[4096];

    while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        ;
}

static void serve(pmi_server *server, const int *ranks, char *text, size_t size, bool *is_gathering)
{
    for (size_t turn = 0, at = 0, end; at < size; turn++, at = end + 1) {
        for (end = at; end < size && text[end] != '\t';)
            end++;
        if (text[at] == '!' && *is_gathering) {
            *is_gathering = false;
            answer(server, text + at + 1, end - at - 1);
        } else {
            send(ranks[turn % HERE], text + at, end - at, MSG_DONTWAIT | MSG_NOSIGNAL);
            pmi_server_progress(server);
        }
        for (int i = 0; i < HERE; i++)
            drain(ranks[i]);
    }
    for (uint32_t rank = 0; rank < RANKS; rank++)
        pmi_server_rank_ended(server, rank);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t node_of[RANKS] = {0, 0, size && *data == '2' ? 1 : 0}, local_of[RANKS] = {0, 1, node_of[2] ? 0 : 2};
    map_node nodes[2] = {{.name = "a", .count = RANKS - node_of[2]}, {.name = "b", .count = 1}};
    map map = {.nodes = nodes, .node_count = 1 + node_of[2], .ranks = RANKS, .node_of = node_of, .local_of = local_of};
    bool is_gathering = false;
    pmi_callbacks up = {.pmix_msg = asked, .aborted = aborted, .owner = &is_gathering};
    options opts = {0};
    env_list env = {0};
    int ranks[HERE];
    pmi_server *server = size > 1 && size < 100000 ? pmi_server_open(&opts, "job", &map, 0, &up) : NULL;

    if (!server)
        return 0;
    for (uint32_t rank = 0; rank < HERE; rank++) {
        if (pmi_server_environ(server, rank, 0, &env))
            abort();
        for (char **item = env.items; *item; item++)
            if (!strncmp(*item, "PMI_FD=", 7))
                ranks[rank] = dup(atoi(*item + 7));
        pmi_server_started(server);
    }
    char *text = fuzz_text(data + 1, size - 1);
    serve(server, ranks, text, size - 1, &is_gathering);
    free(text);
    pmi_server_close(server);
    env_free(&env);
    for (int i = 0; i < HERE; i++)
        close(ranks[i]);
    return 0;
}
