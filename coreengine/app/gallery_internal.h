/* What the files of the gallery share. */
#ifndef RV_APP_GALLERY_INTERNAL_H
#define RV_APP_GALLERY_INTERNAL_H

#include "coreengine/app/gallery.h"

const char *app_gallery_folder(const rv_gallery *g); /* of the pipelines; borrowed */

#endif
