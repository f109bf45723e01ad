/* Addresses of the internet in one form: 16 bytes, IPv4 as mapped into IPv6 (::ffff:a.b.c.d). */
#ifndef RV_ADDRESS_H
#define RV_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#define RV_ADDRESS_MAX 48 /* bytes of one as text, with its NUL */

struct rv_address {
    unsigned char bytes[16];
};

struct rv_address rv_address_of_v4(const unsigned char v4[4]);
/** False: it is neither of IPv4 nor of IPv6; *out is zeroed. */
bool rv_address_of(const struct sockaddr *address, struct rv_address *out);
bool rv_address_is_v4(const struct rv_address *a);       /* bytes[12] to [15] are it */
bool rv_address_is_loopback(const struct rv_address *a); /* 127.0.0.0/8, ::1 */
/** Where packets to it go: behind 64:ff9b::/96 (NAT64) the IPv4 address in its end, else the address itself. Not for a
 * client's own address: what it says about itself must not make it local. */
struct rv_address rv_address_target(const struct rv_address *a);
void rv_address_write(const struct rv_address *a, char out[RV_ADDRESS_MAX]);

#endif
