// The installed packages: they stand in the build tree, where an import from here would not look.
import {createRequire} from 'node:module'
import {join} from 'node:path'

export const modules = process.env.PEER_MODULES
export const load = createRequire(join(modules, 'package.json'))
