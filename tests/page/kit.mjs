// A browser that is driven from outside, and what it must never see: scripts of others, faults of our own, requests to
// other places, breaches of the content policy.
import {mkdirSync, readFileSync} from 'node:fs'
import {join} from 'node:path'
import {check, file, load, scratch} from '../serve/kit.mjs'

export {call, check, command, equal, file, finish, scratch, serve} from '../serve/kit.mjs'

const HANGS_MS = Number(process.env.PAGE_HANGS_MS) || 600000 // nothing is expected to take long; only what hangs is ended
export const soak = Boolean(process.env.REEVE_SOAK)
export const screens = process.env.PAGE_SCREENS ?? join(scratch, 'screens')
mkdirSync(screens, {recursive: true})
const puppeteer = load('puppeteer-core')
const axeSource = readFileSync(load.resolve('axe-core/axe.min.js'), 'utf8')

export const browser = await puppeteer.launch({
  executablePath: process.env.BROWSER,
  protocolTimeout: HANGS_MS,
  headless: true,
  userDataDir: join(scratch, 'browser'),
  env: {...process.env, HOME: scratch, XDG_CONFIG_HOME: scratch, XDG_CACHE_HOME: scratch},
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-extensions', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--mute-audio', '--in-process-gpu', '--no-zygote'],
})
process.on('exit', () => browser.process()?.kill('SIGKILL'))

// A page of its own cookies. seen: what must stay empty. expected: parts of console errors that are meant to happen.
export async function open(server, hash = '', {width = 1180, height = 820, dark = false, phone = false, expected = [], context} = {}) {
  const own = context ?? (await browser.createBrowserContext())
  const page = await own.newPage()
  page.setDefaultTimeout(HANGS_MS)
  await page.setViewport({width: phone ? 390 : width, height: phone ? 800 : height, isMobile: phone, hasTouch: phone})
  await page.emulateMediaFeatures([
    {name: 'prefers-color-scheme', value: dark ? 'dark' : 'light'},
    {name: 'prefers-reduced-motion', value: 'reduce'},
  ])
  const seen = []
  const note = (what) => expected.some((e) => what.includes(e)) || seen.push(what)
  page.on('dialog', (d) => (note(`dialog: ${d.message()}`), d.dismiss().catch(() => {})))
  page.on('pageerror', (e) => note(`error: ${e.message}`))
  page.on('console', (m) => ['error', 'warn'].includes(m.type()) && note(`console: ${m.text()}`))
  page.on('request', (r) => !r.url().startsWith(server.url) && !/^(data|blob|about):/.test(r.url()) && note(`request: ${r.url()}`))
  await page.exposeFunction('reeveViolation', (text) => note(`policy: ${text}`))
  await page.evaluateOnNewDocument(() => {
    addEventListener('securitypolicyviolation', (e) => window.reeveViolation(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`))
  })
  page.seen = seen
  page.own = own
  await page.goto(`${server.url}/${hash}`)
  return page
}
export function clean(page, what) {
  check(page.seen.length === 0, `${what}: nothing that must not happen`, page.seen)
}

export const shot = (page, name) => page.screenshot({path: join(screens, `${name}.png`)})

// Nothing serious may be wrong for people who use the page by other means.
export async function accessible(page, what) {
  if (!(await page.evaluate(() => Boolean(window.axe)))) await page.evaluate(axeSource)
  const result = await page.evaluate(() => axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}))
  const bad = result.violations.filter((v) => ['serious', 'critical'].includes(v.impact))
  check(bad.length === 0, `${what}: accessible`, bad.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3).join(' | ')} ${v.nodes[0]?.any?.[0]?.message ?? ''}`))
}

// Conditions. One that does not come says what is to be seen in its place.
async function told(page, what, f) {
  try {
    return await f()
  } catch (e) {
    await shot(page, 'failed').catch(() => {})
    const body = await page.evaluate(() => `${location.href}\n${document.body.innerText}`).catch(() => '')
    throw new Error(`${what} did not come; failed.png shows what did. ${JSON.stringify(page.seen)}\n${body}\n${e.message}`)
  }
}
export const has = (page, selector, words) =>
  told(page, `"${words}" in ${selector}`, () =>
    page.waitForFunction((s, t) => [...document.querySelectorAll(s)].some((e) => e.textContent.includes(t)), {polling: 'raf'}, selector, words),
  )
export const text = (page, selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent))
export const button = (page, name) => told(page, `the button ${name}`, () => page.waitForSelector(`::-p-aria([name="${name}"][role="button"])`))
// Something above it may still open or close: a click goes to a place, not to an element.
const still = (element) =>
  element.evaluate(
    (e) =>
      new Promise((done) => {
        let last
        const look = () => {
          const {x, y, width, height} = e.getBoundingClientRect()
          const now = [x, y, width, height].join()
          if (now === last) return done()
          last = now
          requestAnimationFrame(() => requestAnimationFrame(look))
        }
        look()
      }),
  )
// What is drawn again between the look and the click, or between press and release, is looked for again.
async function clicked(page, find, how) {
  for (const until = Date.now() + HANGS_MS; ; )
    try {
      const element = await find()
      await still(element)
      await element.evaluate((e) => {
        window.came = false
        const came = ({target}) => (window.came = e.contains(target) || target.closest(e.tagName)?.textContent === e.textContent)
        document.addEventListener('click', came, {once: true, capture: true}) // also on the one that was drawn in its place
      })
      await element.click(how)
      if (await page.evaluate(() => window.came !== false).catch(() => true)) return // another page came: it was clicked
    } catch (e) {
      if (!/not clickable|detached|not attached/.test(e.message) || Date.now() > until) throw e
      await page.evaluate(() => new Promise(requestAnimationFrame))
    }
}
export const click = (page, selector, how) => clicked(page, () => told(page, selector, () => page.waitForSelector(selector)), how)
export const press = (page, name) => clicked(page, () => button(page, name))
export async function say(page, words) {
  await page.waitForSelector('#message')
  await page.type('#message', words)
  await page.keyboard.press('Enter')
}
// No turn is under way any more.
export const idle = (page) => page.waitForFunction(() => document.querySelector('.send') && !document.querySelector('.send.stops'), {polling: 'raf'})

export function agents(dir, ...names) {
  for (const name of names)
    file(
      `${dir}/${name}.yaml`,
      `kind: agent\nname: ${name}\ndescription: Answers as ${name}.\nmodel: test:model\ntools:\n  - name: wipe\n  - name: search\n  - name: action\n  - name: ask_agent\n`,
    )
  return join(scratch, dir)
}
