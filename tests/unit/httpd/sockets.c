/* What the system knows of a socket. By itself, because the headers of Linux and of the C library define the same. */
#include "tests/unit/httpd/sockets.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static struct tcp_info info_of(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;

    (void)getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
    return info;
}

uint64_t socket_received(int fd, int *unread)
{
    *unread = 0;
    (void)ioctl(fd, FIONREAD, unread);
    return info_of(fd).tcpi_bytes_received;
}

uint64_t socket_sent(int fd)
{
    struct tcp_info info = info_of(fd);

    return info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes;
}

bool socket_has_ended(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}
