/* Media types: of attachments, and of parts of an answer. */
#ifndef RV_MEDIA_H
#define RV_MEDIA_H

#include "coreengine/base/buf.h"

#define RV_MEDIA_TYPE_MAX 127 /* bytes, by RFC 6838 */

/** TYPE/SUBTYPE by RFC 6838, without parameters. */
bool rv_is_media_type(rv_str s);

#endif
