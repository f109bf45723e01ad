// Chance that comes out the same every time: numbers from a seed, and texts cut where they say.
export function random(seed) {
  let state = seed >>> 0
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * n)
  }
}

// A text in pieces of 1 to most characters; never within one that takes two units.
export function pieces(text, most, next) {
  const letters = [...text]
  const out = []
  for (let at = 0; at < letters.length;) {
    const n = 1 + next(most)
    out.push(letters.slice(at, at + n).join(''))
    at += n
  }
  return out
}

// The bytes of a body in pieces that respect nothing: not lines, not characters.
export function byteCuts(bytes, most, next) {
  const out = []
  for (let at = 0; at < bytes.length;) {
    const n = 1 + next(most)
    out.push(bytes.subarray(at, at + n))
    at += n
  }
  return out
}
