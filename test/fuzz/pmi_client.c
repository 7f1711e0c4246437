/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_client: what a launcher's PMI server sends to a rank (launch/pmi_wire, pmi, pmi_value, pmi_map). The input is the server's whole side
 * of a conversation; its first letter chooses the client's first offer, '2': PMI-2, else PMI-1.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch/pmi.h"
#include "launch/pmi_map.h"
#include "launch/pmi_value.h"
#include "test/fuzz/fuzz.h"

#define RANKS 6
#define INPUT_MAX 60000 /* fits a socket's buffer: nothing blocks */

static void map_check(const char *text)
{
    uint64_t node_ids[RANKS];
    uint32_t node_of[RANKS], local_of[RANKS];

    if (!weft_pmi_map_parse(text, RANKS, node_ids))
        return;
    uint32_t nodes = weft_pmi_map_count(node_ids, RANKS, node_of, local_of);
    for (uint32_t r = 0; r < RANKS; r++)
        if (node_of[r] >= nodes || local_of[r] >= RANKS)
            abort();
}

static void talk(void)
{
    char value[1024], bytes[300];
    size_t count = sizeof(bytes);
    weft_pmi pmi;
    int rc = weft_pmi_open(&pmi);

    if (!rc && !weft_pmi_job_get(&pmi, "PMI_process_mapping", value, sizeof(value)))
        map_check(value);
    if (!rc)
        rc = weft_pmi_value_put(&pmi, "weft", "0123456789", 10);
    if (!rc)
        rc = weft_pmi_fence(&pmi);
    for (uint32_t r = 0; r < 2 && !rc; r++)
        rc = weft_pmi_value_get(&pmi, r, "weft", bytes, &count);
    if (count > sizeof(bytes))
        abort();
    weft_pmi_close(&pmi, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char number[16];
    int ends[2];

    if (size < 1 || size > INPUT_MAX || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 0;
    snprintf(number, sizeof(number), "%d", ends[0]);
    setenv("PMI_FD", number, 1);
    setenv("PMI_RANK", "1", 1);
    setenv("PMI_SIZE", "6", 1);
    if (*data == '2')
        setenv("PMI_JOBID", "7", 1);
    else
        unsetenv("PMI_JOBID");
    if (send(ends[1], data + 1, size - 1, MSG_DONTWAIT) == (ssize_t)(size - 1)) {
        shutdown(ends[1], SHUT_WR);
        talk(); /* closes ends[0] */
    } else {
        close(ends[0]);
    }
    close(ends[1]);
    return 0;
}
