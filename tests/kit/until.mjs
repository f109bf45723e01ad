// Waiting without rests: a fact is looked at again when one of its sources tells something.
import {watch} from 'node:fs'

const LOOK_MS = 1000 // and then, as SQLite writes its log a moment before what it says can be read (tests/kit/changes.c)

// fact: a function, also an async one. sources: folders whose files change, and what emits: streams with data, processes, sockets.
// What never becomes a fact is ended by ctest.
export async function until(fact, ...sources) {
  let wake = () => {}
  const tell = () => wake()
  const names = ['data', 'exit', 'close']
  const folders = sources.filter((source) => typeof source === 'string').map((folder) => watch(folder, tell))
  const emitters = sources.filter((source) => typeof source !== 'string')
  for (const name of names) for (const emitter of emitters) emitter.on(name, tell)
  const looks = setInterval(tell, LOOK_MS)
  try {
    for (;;) {
      const told = new Promise((resolve) => (wake = resolve)) // before the look: nothing is missed
      const found = await fact()
      if (found) return found
      await told
      await new Promise(setImmediate) // what else follows from it
    }
  } finally {
    clearInterval(looks)
    for (const folder of folders) folder.close()
    for (const name of names) for (const emitter of emitters) emitter.off(name, tell)
  }
}
