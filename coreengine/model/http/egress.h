/* Where requests may go whose address a tool or a model chose: the one policy for addresses that come from tools and
 * models.
 *
 * The address of the other side is looked at when the socket is made, after its name was resolved: it is the address
 * that is connected to, so it does not matter how it was written, what the name server says next, or where a redirect
 * leads. Without a rule only public addresses at the ports 80 and 443 are allowed. Pure: no I/O. */
#ifndef RV_EGRESS_H
#define RV_EGRESS_H

#include "coreengine/base/base.h"

#define RV_EGRESS_MAX_RULES 256 /* of one policy; each connection is compared with all */

struct sockaddr;
typedef struct rv_egress rv_egress; /* constant once it is made: any thread */

/** Read what is allowed beside public addresses: items that are separated by commas, each a host ("db.internal",
 * "localhost:8080") or a range of addresses ("10.1.0.0/16", "[fd00::]/8", "192.168.1.7", with ":PORT" at the end for
 * one port; brackets around IPv6). NULL or "": nothing. RV_E_PARSE names the item. */
RV_MUST_CHECK int rv_egress_new(const char *list, rv_egress **out, rv_err **err);
void rv_egress_free(rv_egress *e);
/** May a connection to peer be made? host, as the request names it, and port. *why (static): a reason that it may not.
 */
bool rv_egress_allows(const rv_egress *e, rv_str host, int port, const struct sockaddr *peer, const char **why);

#endif
