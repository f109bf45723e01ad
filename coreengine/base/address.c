/* One form of addresses, and the rules that follow from their bytes. */
#include "coreengine/base/net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff}, nat64[12] = {0, 0x64, 0xff, 0x9b};

struct rv_address rv_address_of_v4(const unsigned char v4[4])
{
    struct rv_address a;

    memcpy(a.bytes, mapped, sizeof mapped);
    memcpy(a.bytes + sizeof mapped, v4, 4);
    return a;
}

bool rv_address_read(const struct sockaddr *address, struct rv_address *out)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    unsigned char bytes[4];

    *out = (struct rv_address){{0}};
    switch (address->sa_family) {
    case AF_INET:
        memcpy(&v4, address, sizeof v4);
        memcpy(bytes, &v4.sin_addr, sizeof bytes);
        *out = rv_address_of_v4(bytes);
        return true;
    case AF_INET6:
        memcpy(&v6, address, sizeof v6);
        memcpy(out->bytes, &v6.sin6_addr, sizeof out->bytes);
        return true;
    default: /* a number of the system, not an enum */
        return false;
    }
}

bool rv_address_is_v4(const struct rv_address *a)
{
    return memcmp(a->bytes, mapped, sizeof mapped) == 0;
}

bool rv_address_is_loopback(const struct rv_address *a)
{
    static const unsigned char one[16] = {[15] = 1};

    return rv_address_is_v4(a) ? a->bytes[12] == 127 : memcmp(a->bytes, one, sizeof one) == 0;
}

struct rv_address rv_address_target(const struct rv_address *a)
{
    return memcmp(a->bytes, nat64, sizeof nat64) == 0 ? rv_address_of_v4(a->bytes + sizeof nat64) : *a;
}

void rv_address_write(const struct rv_address *a, char out[RV_ADDRESS_MAX])
{
    bool v4 = rv_address_is_v4(a);

    if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->bytes + sizeof mapped : a->bytes, out, RV_ADDRESS_MAX))
        out[0] = '\0';
}
