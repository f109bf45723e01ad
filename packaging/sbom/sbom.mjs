// sbom.mjs PACKAGES VERSION PROGRAM CURL OUT: the bill of materials of the static program. PACKAGES: where npm has installed
// what package-lock.json pins. Components are the packages of Debian whose archives and sources are linked in, by dpkg; CURL
// is where packaging/static-curl has built libcurl of its source.
import {execFileSync} from 'node:child_process'
import {createHash} from 'node:crypto'
import {readdirSync, readFileSync, writeFileSync} from 'node:fs'
import {createRequire} from 'node:module'
import {join} from 'node:path'

const [packages, version, program, curl, out] = process.argv.slice(2)
const {Enums, Models, Serialize, Spec, Validation} = createRequire(join(packages, 'package.json'))('@cyclonedx/cyclonedx-library')

// As cmake/static.cmake and the lists of libraries link them; the C library and that of GCC are part of every static program.
const linked = ['libyaml-dev', 'libjson-c-dev', 'libuv1-dev', 'libsqlite3-dev', 'nettle-dev', 'libgmp-dev', 'libpcre2-dev', 'libutf8proc-dev',
    'libedit-dev', 'libncurses-dev', 'libbsd-dev', 'libmd-dev', 'libssl-dev', 'libnghttp2-dev', 'zlib1g-dev', 'node-llhttp', 'node-marked', 'libjs-highlight.js', 'libc6-dev', 'libgcc-12-dev']

const show = (name, field) => execFileSync('dpkg-query', ['-W', '-f', '${' + field + '}', name]).toString()
const bom = new Models.Bom()
const main = new Models.Component(Enums.ComponentType.Application, 'reeve', {version, bomRef: 'reeve'})
main.licenses.add(new Models.SpdxLicense('Apache-2.0'))
main.hashes.set(Enums.HashAlgorithm['SHA-256'], createHash('sha256').update(readFileSync(program)).digest('hex'))
bom.metadata.component = main
// Of the tree and not of the clock, so that the same tree gives the same file.
if (process.env.SOURCE_DATE_EPOCH)
    bom.metadata.timestamp = new Date(Number(process.env.SOURCE_DATE_EPOCH) * 1000)
for (const name of linked) {
    const source = show(name, 'source:Package')
    const ref = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(show(name, 'Version'))}?arch=${show(name, 'Architecture')}&distro=debian-12&upstream=${encodeURIComponent(source)}`
    const component = new Models.Component(Enums.ComponentType.Library, name, {version: show(name, 'Version'), bomRef: name, purl: ref, description: `source package ${source}`})
    bom.components.add(component)
    main.dependencies.add(component.bomRef)
}

const [, curlVersion] = readdirSync(join(curl, 'source')).map(name => name.match(/^curl_(.*)\.dsc$/)).find(Boolean)
const built = new Models.Component(Enums.ComponentType.Library, 'curl', {version: curlVersion, bomRef: 'curl',
    purl: `pkg:deb/debian/curl@${encodeURIComponent(curlVersion)}?arch=source&distro=debian-12`,
    description: 'source package curl, built without GSSAPI and LDAP'})
bom.components.add(built)
main.dependencies.add(built.bomRef)

const spec = Spec.Spec1dot6
const text = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(spec)).serialize(bom, {sortLists: true, space: 2})
const wrong = await new Validation.JsonStrictValidator(spec.version).validate(text)
if (wrong) {
    console.error(JSON.stringify(wrong))
    process.exit(1)
}
writeFileSync(out, text)
console.log(`${bom.components.size} components`)
