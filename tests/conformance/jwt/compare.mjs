// node compare.mjs MODULES JUDGE [CASES]: tokens that are sound, and mutations of them, judged by jose and by ours. What
// ours accepts, jose has to accept, with the same subject. Where jose accepts and ours refuses, the reason has to be one
// of the rules below, which are stricter on purpose.
import {spawnSync} from 'node:child_process'
import {createHmac, createPublicKey, generateKeyPairSync, sign} from 'node:crypto'
import {createRequire} from 'node:module'
import {pathToFileURL} from 'node:url'

const [modules, judge, cases] = process.argv.slice(2)
const CASES = Number(cases || 6000)
const require = createRequire(modules + '/x')
const {jwtVerify, createLocalJWKSet} = await import(pathToFileURL(require.resolve('jose')).href)

let state = 1n
const mask = (1n << 64n) - 1n
function below(n) {
  state = (state + 0x9e3779b97f4a7c15n) & mask
  let x = state
  x = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & mask
  x = ((x ^ (x >> 27n)) * 0x94d049bb133111ebn) & mask
  return Number((x ^ (x >> 31n)) % BigInt(n))
}
const pick = (list) => list[below(list.length)]

const secret = 'a secret of at least thirty-two bytes'
const rsa = [0, 1].map(() => generateKeyPairSync('rsa', {modulusLength: 2048}).privateKey)
const ec = generateKeyPairSync('ec', {namedCurve: 'P-256'}).privateKey
const publics = [
  {...createPublicKey(rsa[0]).export({format: 'jwk'}), kid: 'r0', alg: 'RS256', use: 'sig'},
  {...createPublicKey(rsa[1]).export({format: 'jwk'}), kid: 'r1'},
  {...createPublicKey(ec).export({format: 'jwk'}), kid: 'e0'},
]
const jwks = JSON.stringify({keys: publics})
const set = createLocalJWKSet({keys: publics})
const NOW = 1_700_000_000_000
const SKEW = 30
const issuer = 'https://issuer.example'
const audience = 'reeve'

const b64 = (text) => Buffer.from(text).toString('base64url')
function signed(alg, input, key) {
  if (alg === 'HS256') return createHmac('sha256', secret).update(input).digest('base64url')
  if (alg === 'ES256') return sign('sha256', Buffer.from(input), {key: ec, dsaEncoding: 'ieee-p1363'}).toString('base64url')
  return sign('sha256', Buffer.from(input), rsa[key]).toString('base64url')
}
function make(header, claims, alg = JSON.parse(header).alg, key = 0) {
  const input = `${b64(header)}.${b64(claims)}`
  return `${input}.${signed(alg, input, key)}`
}

const sound = () => ({sub: 'ada', tenant_id: 'acme', iss: issuer, aud: audience, exp: NOW / 1000 + 100})
const heads = [
  [{alg: 'HS256', typ: 'JWT'}, 0], [{alg: 'RS256', kid: 'r0'}, 0], [{alg: 'RS256', kid: 'r1', typ: 'at+jwt'}, 1], [{alg: 'ES256', kid: 'e0'}, 0],
  [{alg: 'ES256'}, 0],
]

// Values that stand where others are expected.
const odd = [null, true, 0, -1, 1.5, '', 'x', 'null', [], {}, ['x'], [audience], [issuer], NOW / 1000, NOW / 1000 + 29, NOW / 1000 + 30,
  NOW / 1000 + 31, NOW / 1000 - 30, NOW / 1000 - 31, NOW / 1000 - 29.5, 1e308, -1e308, audience, issuer, 'HS256', 'RS256', 'ES256', 'none', 'r0', 'r1', 'e0',
  'JWT', 'at+jwt', 'access', 'refresh']
const names = ['exp', 'nbf', 'iat', 'iss', 'aud', 'sub', 'tenant_id', 'type', 'scope', 'alg', 'kid', 'typ', 'crit', 'b64', 'jwk', 'jku', 'cty', 'enc', 'zip', '__proto__']

function mutated_object(o) {
  const copy = {...o}
  for (let n = 1 + below(2); n > 0; n--) {
    const name = pick(names)
    if (below(4) === 0) delete copy[name]
    else copy[name] = pick(odd)
  }
  return copy
}
function mutated_text(text) {
  const at = below(text.length + 1)
  const k = below(6)
  if (k === 0) return text.slice(0, at) + pick(['"', ',', '{', '}', ' ', '\n', '\0', 'é', '/**/', '1', '\ufeff']) + text.slice(at)
  if (k === 1) return text.slice(0, at) + text.slice(at + 1 + below(3))
  if (k === 2) return text.replace('{', pick(['{"sub":"eve",', '{"alg":"none",', '{"exp":1,', ' {', '{"kid":"r1",', '{"aud":"reeve",']))
  if (k === 3) return text.replace(/}$/, pick([',"sub":"eve"}', ',"alg":"HS256"}', ',"exp":9999999999}', '} ', '}}', ',}']))
  if (k === 4) return text.replace('"', "'")
  return text.replace(/e/, '\\u0065')
}
function mutated_token(t) {
  const at = below(t.length)
  const k = below(9)
  if (k === 0) return t.slice(0, at) + pick([...'ABCZabcz019-_=.+/ \n']) + t.slice(at + 1)
  if (k === 1) return t.slice(0, at) + pick([...'ABz9-_=. ']) + t.slice(at)
  if (k === 2) return t.slice(0, at) + t.slice(at + 1)
  if (k === 3) return t + pick(['=', '==', '.', 'A', ' ', '\n', '\0'])
  if (k === 4) return t.split('.').reverse().join('.')
  if (k === 5) { // the last character of a part: spare bits
    const parts = t.split('.')
    const i = below(3)
    const all = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    parts[i] = parts[i].slice(0, -1) + all[(all.indexOf(parts[i].at(-1)) + 1 + below(3)) % 64]
    return parts.join('.')
  }
  if (k === 6) return t.split('.').map((p) => p + '='.repeat((4 - (p.length % 4)) % 4)).join('.')
  if (k === 7) return t.split('.').slice(0, 2).join('.') + '.'
  return t.replace(/-/g, '+').replace(/_/g, '/')
}

function token() {
  const [head, key] = pick(heads)
  const k = below(12)
  if (k === 0) return make(JSON.stringify(head), JSON.stringify(sound()), head.alg, key)
  if (k < 4) return make(JSON.stringify(head), JSON.stringify(mutated_object(sound())), head.alg, key)
  if (k < 6) return make(JSON.stringify(mutated_object(head)), JSON.stringify(sound()), head.alg, key)
  if (k === 6) return make(mutated_text(JSON.stringify(head)), JSON.stringify(sound()), head.alg, key)
  if (k === 7) return make(JSON.stringify(head), mutated_text(JSON.stringify(sound())), head.alg, key)
  if (k === 8) { // signed by the secret with what is public
    const input = `${b64(JSON.stringify({...head, alg: 'HS256'}))}.${b64(JSON.stringify(sound()))}`
    return `${input}.${createHmac('sha256', createPublicKey(rsa[0]).export({format: 'pem', type: 'spki'})).update(input).digest('base64url')}`
  }
  if (k === 9) { // DER
    const input = `${b64(JSON.stringify({alg: 'ES256', kid: 'e0'}))}.${b64(JSON.stringify(sound()))}`
    return `${input}.${sign('sha256', Buffer.from(input), ec).toString('base64url')}`
  }
  return mutated_token(make(JSON.stringify(head), JSON.stringify(sound()), head.alg, key))
}

async function by_jose(t) {
  let alg
  try {
    alg = JSON.parse(Buffer.from(t.split('.')[0], 'base64url').toString()).alg
  } catch {
    alg = 'RS256'
  }
  const options = {issuer, audience, clockTolerance: SKEW, currentDate: new Date(NOW), requiredClaims: ['exp', 'sub']}
  try {
    const {payload} = alg === 'HS256'
      ? await jwtVerify(t, new TextEncoder().encode(secret), {...options, algorithms: ['HS256']})
      : await jwtVerify(t, set, {...options, algorithms: ['RS256', 'ES256']})
    return {sub: payload.sub}
  } catch (e) {
    return {why: String(e.message)}
  }
}

// Rules of ours that jose does not have.
const stricter = [
  'a part of the token is not base64url in its one spelling', 'the header of the token is not a JSON object',
  'the claims of the token are not a JSON object', 'the token has "crit"', 'the type of the token is neither JWT nor at+jwt',
  '"kid" is not a string', 'the token was issued in the future', '"iat" is not a number', '"sub" is missing or not an id',
  '"tenant_id" is not an id', 'the token is not an access token', 'the scopes of the token are neither a text nor an array',
]

const tokens = Array.from({length: CASES}, token)
const input = tokens.map((t) => JSON.stringify({token: t, jwks, secret, issuer, audience, skew: SKEW, now: NOW})).join('\n') + '\n'
const ran = spawnSync(judge, [], {input, maxBuffer: 1 << 30, encoding: 'utf8'})
if (ran.status !== 0) throw new Error(`${judge}: ${ran.status} ${ran.stderr}`)
const ours = ran.stdout.trimEnd().split('\n').map((line) => JSON.parse(line))
if (ours.length !== CASES) throw new Error(`${ours.length} answers for ${CASES} tokens`)

let both = 0, neither = 0, bad = 0
const only = new Map()
for (const [i, t] of tokens.entries()) {
  const jose = await by_jose(t)
  const accepted = 'sub' in ours[i]
  if (accepted && jose.sub !== ours[i].sub) {
    bad++
    console.log(`accepted by ours as ${ours[i].sub}, by jose: ${JSON.stringify(jose)}: ${t}`)
  } else if (accepted) both++
  else if (!('sub' in jose)) neither++
  else {
    const why = ours[i].why.replace(/ \(kid.*/, '')
    only.set(why, (only.get(why) || 0) + 1)
    if (!stricter.includes(why)) {
      bad++
      console.log(`accepted by jose, refused by ours (${why}): ${t}`)
    }
  }
}
if (both < CASES / 20) throw new Error(`only ${both} of ${CASES} tokens were accepted`)
console.log(`${CASES} tokens: ${both} accepted and ${neither} refused by both; by ours alone refused:`)
for (const [why, n] of only) console.log(`  ${n} ${why}`)
process.exit(bad ? 1 : 0)
