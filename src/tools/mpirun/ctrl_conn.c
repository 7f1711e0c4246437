/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ctrl_conn: see ctrl_conn.h. The kernel monitors the peer's host (keepalive, TCP_USER_TIMEOUT), so a stopped or slow process is not taken
 * for a lost host.
 */
#include "tools/mpirun/ctrl_conn.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"

#define MAGIC "WEFTWIRE"
#define HDR_BYTES 12
#define MAC_BYTES 16
#define READ_MAX ((size_t)256 << 10)

int ctrl_secret_make(unsigned char *secret) { return weft_random(secret, CTRL_SECRET_BYTES); }

static void release_write(char *release)
{
    memset(release, 0, 32);
    snprintf(release, 32, "%s", PACKAGE_VERSION);
}

static void hello_sign(const unsigned char *secret, const ctrl_hello *hello, unsigned char *mac)
{
    weft_hmac hmac;

    weft_hmac_begin(&hmac, secret);
    weft_hmac_add(&hmac, "hello", sizeof("hello"));
    weft_hmac_add(&hmac, hello, offsetof(ctrl_hello, mac));
    weft_hmac_end(&hmac, mac);
}

void ctrl_hello_make(const unsigned char *secret, uint32_t node, ctrl_hello *hello)
{
    memcpy(hello->magic, MAGIC, sizeof(hello->magic));
    hello->version = htole32(CTRL_VERSION);
    hello->node = htole32(node);
    release_write(hello->release);
    ctrl_secret_make(hello->nonce);
    hello_sign(secret, hello, hello->mac);
}

bool ctrl_hello_is_valid(const unsigned char *secret, const ctrl_hello *hello)
{
    size_t length = strnlen(hello->release, sizeof(hello->release));
    unsigned char mac[32];

    hello_sign(secret, hello, mac);
    if (memcmp(hello->magic, MAGIC, sizeof(hello->magic)) || !weft_bytes_equal(mac, hello->mac, sizeof(mac)))
        return false;
    for (size_t i = 0; i < length; i++) /* it may be printed on a terminal */
        if (hello->release[i] < ' ' || hello->release[i] > '~')
            return false;
    return length < sizeof(hello->release);
}

bool ctrl_hello_is_same_release(const ctrl_hello *hello)
{
    return hello->version == htole32(CTRL_VERSION) && !strcmp(hello->release, PACKAGE_VERSION);
}

/* Derives a key or proof by HMAC over the handshake so far and a label per use. */
static void derive(const unsigned char *secret, const char *use, const ctrl_hello *hello, const ctrl_answer *answer, unsigned char *result)
{
    weft_hmac hmac;

    weft_hmac_begin(&hmac, secret);
    weft_hmac_add(&hmac, use, strlen(use) + 1);
    weft_hmac_add(&hmac, hello, sizeof(*hello));
    weft_hmac_add(&hmac, answer, offsetof(ctrl_answer, proof));
    weft_hmac_end(&hmac, result);
}

void ctrl_answer_make(const unsigned char *secret, const ctrl_hello *hello, ctrl_answer *answer)
{
    memset(answer, 0, sizeof(*answer));
    memcpy(answer->magic, MAGIC, sizeof(answer->magic));
    answer->version = htole32(CTRL_VERSION);
    answer->is_other = htole32(!ctrl_hello_is_same_release(hello));
    release_write(answer->release);
    ctrl_secret_make(answer->nonce);
    if (!answer->is_other)
        derive(secret, "head", hello, answer, answer->proof);
}

bool ctrl_answer_is_valid(const unsigned char *secret, const ctrl_hello *hello, const ctrl_answer *answer)
{
    unsigned char proof[32];

    derive(secret, "head", hello, answer, proof);
    return weft_bytes_equal(proof, answer->proof, sizeof(proof));
}

void ctrl_proof_make(const unsigned char *secret, const ctrl_hello *hello, const ctrl_answer *answer, unsigned char proof[32])
{
    derive(secret, "daemon", hello, answer, proof);
}

void ctrl_conn_open(ctrl_conn *self, int fd, bool is_head, const unsigned char *secret, const ctrl_hello *hello, const ctrl_answer *answer)
{
    int on = 1, idle_s = 3, every_s = 2, tries = 4, silence_ms = CTRL_SILENCE_MS;
    unsigned char cipher_key[32];

    *self = (ctrl_conn){.fd = fd, .is_head = is_head, .node = le32toh(hello->node)};
    derive(secret, "frames", hello, answer, self->key);
    derive(secret, "bodies", hello, answer, cipher_key);
    weft_hmac_begin(&self->cipher, cipher_key);
    explicit_bzero(cipher_key, sizeof(cipher_key));
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof(silence_ms));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

void ctrl_conn_close(ctrl_conn *self)
{
    if (self->fd >= 0)
        close(self->fd);
    self->fd = -1;
    buffer_free(&self->out);
    buffer_free(&self->in);
}

static void frame_sign(const ctrl_conn *self, bool by_hdr, uint64_t number, const char *head, const void *body, size_t bytes,
                       unsigned char *mac)
{
    unsigned char full[32], mark[9] = {by_hdr ? 'h' : 'd'};
    weft_hmac hmac;

    number = htole64(number);
    memcpy(mark + 1, &number, sizeof(number));
    weft_hmac_begin(&hmac, self->key);
    weft_hmac_add(&hmac, mark, sizeof(mark));
    weft_hmac_add(&hmac, head, HDR_BYTES);
    weft_hmac_add(&hmac, body, bytes);
    weft_hmac_end(&hmac, full);
    memcpy(mac, full, MAC_BYTES);
}

/* Encrypts or decrypts a body in place: counter mode, with HMAC-SHA256 as the block function over direction, frame number and block. No
 * frame of a connection has the number of another one of its direction. Input and output stay as they are: they may be long. */
static void body_crypt(const ctrl_conn *self, uint32_t kind, bool by_head, uint64_t number, char *body, size_t bytes)
{
    unsigned char mark[17] = {by_head ? 'h' : 'd'}, stream[WEFT_SHA256_BYTES];

    if (kind == CTRL_IN || kind == CTRL_OUT)
        return;
    number = htole64(number);
    memcpy(mark + 1, &number, sizeof(number));
    for (uint64_t block = 0; block * sizeof(stream) < bytes; block++) {
        size_t at = block * sizeof(stream), count = bytes - at < sizeof(stream) ? bytes - at : sizeof(stream);
        uint64_t wire = htole64(block);
        weft_hmac hmac = self->cipher;
        memcpy(mark + 9, &wire, sizeof(wire));
        weft_hmac_add(&hmac, mark, sizeof(mark));
        weft_hmac_end(&hmac, stream);
        for (size_t i = 0; i < count; i++)
            body[at + i] = (char)(body[at + i] ^ stream[i]);
    }
}

static void frame_put(ctrl_conn *self, uint32_t node, uint32_t kind, const void *body, size_t bytes)
{
    uint32_t words[3] = {htole32((uint32_t)bytes), htole32(kind), htole32(node)};
    unsigned char mac[MAC_BYTES];
    char head[HDR_BYTES];

    if (self->fd < 0 || self->error || self->has_send_failed)
        return;
    memcpy(head, words, sizeof(head));
    if (bytes > CTRL_BODY_MAX || buffer_add(&self->out, head, sizeof(head)) || buffer_add(&self->out, body, bytes)) {
        self->error = "out of memory";
        return;
    }
    char *copy = self->out.bytes + self->out.start + self->out.used - bytes;
    body_crypt(self, kind, self->is_head, self->sent, copy, bytes);
    frame_sign(self, self->is_head, self->sent++, head, copy, bytes, mac);
    if (buffer_add(&self->out, mac, sizeof(mac)))
        self->error = "out of memory";
    ctrl_conn_flush(self);
}

void ctrl_conn_send(ctrl_conn *self, uint32_t kind, const void *body, size_t bytes)
{
    frame_put(ctrl_conn_carrier(self), self->node, kind, body, bytes);
}

void ctrl_conn_forward(ctrl_conn *self, const ctrl_frame *frame)
{
    frame_put(self, frame->node, frame->kind, frame->body, frame->bytes);
}

void ctrl_conn_flush(ctrl_conn *self)
{
    while (self->fd >= 0 && self->out.used && !self->error) {
        ssize_t n = send(self->fd, self->out.bytes + self->out.start, self->out.used, MSG_NOSIGNAL);
        if (n > 0)
            buffer_drop(&self->out, (size_t)n);
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR) { /* the peer's last frames are still to be read; ctrl_conn_read finds its end */
            self->has_send_failed = true;
            self->out.used = 0;
        }
    }
}

void ctrl_conn_read(ctrl_conn *self)
{
    static char bytes[READ_MAX]; /* static: one thread reads connections */

    if (self->fd < 0 || self->error)
        return;
    ssize_t n = recv(self->fd, bytes, sizeof(bytes), 0);
    if (n > 0 && buffer_add(&self->in, bytes, (size_t)n))
        self->error = "out of memory";
    else if (n == 0)
        self->error = "the connection was closed";
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        self->error = errno == ETIMEDOUT ? "no data were acknowledged for 10 s" : strerror(errno);
}

bool ctrl_conn_next(ctrl_conn *self, ctrl_frame *frame)
{
    char *at = self->in.bytes + self->in.start;
    unsigned char mac[MAC_BYTES];
    uint32_t words[3];

    if (self->fd < 0 || self->in.used < HDR_BYTES + MAC_BYTES)
        return false;
    memcpy(words, at, sizeof(words));
    size_t bytes = le32toh(words[0]);
    if (bytes > CTRL_BODY_MAX) {
        self->in.used = 0;
        self->error = "a frame with an invalid length was received";
        return false;
    }
    if (self->in.used < HDR_BYTES + bytes + MAC_BYTES)
        return false;
    frame_sign(self, !self->is_head, self->received, at, at + HDR_BYTES, bytes, mac);
    if (!weft_bytes_equal(mac, at + HDR_BYTES + bytes, MAC_BYTES)) {
        self->in.used = 0;
        self->error = "a frame with a wrong signature was received";
        return false;
    }
    body_crypt(self, le32toh(words[1]), !self->is_head, self->received++, at + HDR_BYTES, bytes);
    *frame = (ctrl_frame){.kind = le32toh(words[1]), .node = le32toh(words[2]), .body = at + HDR_BYTES, .bytes = bytes};
    buffer_drop(&self->in, HDR_BYTES + bytes + MAC_BYTES); /* the bytes stay valid until more are added */
    return true;
}

void pack_send(pack *self, ctrl_conn *to, uint32_t kind)
{
    if (self->has_failed)
        ctrl_conn_carrier(to)->error = "out of memory";
    else
        ctrl_conn_send(to, kind, self->bytes.bytes + self->bytes.start, self->bytes.used);
    buffer_free(&self->bytes);
}
