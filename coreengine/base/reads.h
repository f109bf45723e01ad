/* Which files a thread reads, for a caller that begins again when one of them changes. */
#ifndef RV_READS_H
#define RV_READS_H

#include <stdbool.h>

/** From now on `told` hears, on this thread, of each file that is read or looked for, before it is opened, and of each
 * folder whose files are listed: also of those that are not there. path is borrowed for the call. told NULL: no more.
 */
void rv_reads_tell(void (*told)(void *self, const char *path, bool is_folder), void *self);
/** Something is about to be read by other means than rv_file_read(), which notes its path itself. */
void rv_reads_note(const char *path, bool is_folder);

#endif
