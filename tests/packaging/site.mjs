// site.mjs MARKED: the site is built in a folder of its own and read as a browser would: each link and each anchor of each
// file leads somewhere inside it, nothing is loaded from elsewhere, each page of docs can be reached by the navigation, and
// searching finds pages, also in a browser without a network.
import {execFileSync} from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import vm from 'node:vm'

const site = fs.mkdtempSync(path.join(os.tmpdir(), 'reeve-site.'))
process.on('exit', () => fs.rmSync(site, {recursive: true, force: true}))
const problems = []
const check = (holds, what) => holds || problems.push(what)

execFileSync('node', ['packaging/site/build.mjs', site, process.argv[2]])
const files = fs.readdirSync(site, {recursive: true}).filter(name => name.endsWith('.html'))
const texts = new Map(files.map(name => [name, fs.readFileSync(path.join(site, name), 'utf8')]))
const ids = new Map([...texts].map(([name, text]) => [name, new Set([...text.matchAll(/ id="([^"]*)"/g)].map(m => m[1]))]))
let links = 0
for (const [name, text] of texts)
    for (const [, attribute, value] of text.matchAll(/<[^>]* (href|src)="([^"]*)"/g)) {
        if (/^[a-z]+:/.test(value)) {
            check(attribute === 'href' && !/<(link|script)[^>]*$/.test(text.slice(0, text.indexOf(value))), `${name}: loads ${value}`)
            continue
        }
        links++
        const [target, fragment] = value.split('#')
        const to = target ? path.normalize(path.join(path.dirname(name), target)) : name
        if (!fs.existsSync(path.join(site, to)))
            check(false, `${name}: no file ${value}`)
        else if (fragment)
            check(ids.get(to)?.has(fragment), `${name}: no anchor ${value}`)
    }

const start = texts.get('docs/README.html')
const sources = fs.readdirSync('docs', {recursive: true}).filter(name => name.endsWith('.md'))
const navigation = start.slice(start.indexOf('<nav'), start.indexOf('</nav>'))
for (const source of sources) {
    const page = 'docs/' + source.replace(/md$/, 'html')
    check(source === 'README.md' || navigation.includes(`"../${page}"`), `${page}: not in the navigation`)
}

const context = vm.createContext({})
vm.runInContext(fs.readFileSync(path.join(site, 'index.js'), 'utf8') + fs.readFileSync(path.join(site, 'search.js'), 'utf8') +
    '\nthis.search = query => find(documents, query, 5)', context)
const first = query => context.search(query)[0]?.url
check(first('schedule a pipeline') === 'docs/how-to/schedule-a-pipeline.html', `schedule a pipeline: ${first('schedule a pipeline')}`)
check(context.search('join_impossible').some(d => d.url.startsWith('docs/')), 'join_impossible is not found')
check(context.search('PostgreSQL move').length > 0, 'not found in another order and case')
check(context.search('xyzzy_nowhere').length === 0 && context.search('  ').length === 0, 'nothing is found')

let browser = 'without a browser'
if (fs.existsSync('/usr/bin/chromium-headless-shell')) {
    browser = 'with a browser'
    const dom = execFileSync('/usr/bin/chromium-headless-shell', ['--no-sandbox', '--disable-gpu', '--host-resolver-rules=MAP * ~NOTFOUND',
        '--window-size=390,800', '--dump-dom', 'file://' + path.join(site, 'docs/how-to/route.html') + '?q=cron'], {stdio: ['ignore', 'pipe', 'ignore']}).toString()
    const found = dom.slice(dom.indexOf('id="found"'), dom.indexOf('id="sides"'))
    check(!/<details open/.test(dom), 'on a phone the list of documents stands open above the page')
    check(/href="\.\.\/\.\.\/docs\/[^"]*schedule/.test(found), 'the browser shows no page about schedules: ' + found.slice(0, 300))
}
if (problems.length) {
    console.log(problems.slice(0, 40).join('\n'))
    process.exit(1)
}
console.log(`${files.length} files, ${links} links, all lead somewhere; searched ${browser}`)
