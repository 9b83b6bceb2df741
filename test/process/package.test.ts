/** Tests the npm package as users install it, without the rest of this checkout. */

import { readFile, realpath } from 'node:fs/promises'
import { builtinModules } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type InstalledPackage, installPackage } from '../support/installed-package.ts'
import { renderedPage, typedProgram, typedProject } from '../support/package-user.ts'
import { makeFolder, repository, startServer } from '../support/process.ts'
import { readArtifact, readStatus, uploadWhole } from '../support/uploads.ts'

// Installing packages and starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 180_000 })

let installed: InstalledPackage
let manifest: Manifest

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
}

beforeAll(async () => {
  installed = await installPackage()
  manifest = JSON.parse(await readText('package.json')) as Manifest
})
afterAll(() => installed?.remove())

const readText = (path: string) => readFile(join(installed.folder, 'node_modules/parley', path), 'utf8')

describe('the npm tarball', () => {
  const allowed = [
    /^(package|openapi)\.json$/,
    /^(README|CHANGELOG)\.md$|^(LICENSE|NOTICE)$/,
    /^prices\/prices\.json$/,
    /^docs\/[\w-]+\.md$/,
    /^examples\/webhook-[\w-]+\.mjs$/,
    /^src\/([\w-]+\/)*[\w-]+\.(js|d\.ts)$/,
    /^packages\/in-process\/src\/[\w-]+\.js$/,
    /^src\/artifacts\/status-page\/status\.css$/,
    /^src\/design\/(tokens\.css|mark\.svg)$/,
    /^client\/rpc\/(index|link)\.(js|d\.ts)$/,
    /^dist\/console\/[\w.-]+\.(js|css)\.br$/,
    /^dist\/widget\/([\w-]+\.(js|css)(\.(br|gz))?|types\/([\w-]+\/)*[\w-]+\.d\.ts)$/,
    /^src\/web\/documentation\.css$/,
    /^dist\/docs\/[\w-]+\.png$/,
    /^dist\/(console|widget|docs)\/manifest\.json$/,
  ]

  test('contains only code, types and the static files that the service serves', () => {
    expect(installed.files.filter((path) => !allowed.some((one) => one.test(path)))).toEqual([])
    for (const one of allowed) expect(installed.files.some((path) => one.test(path))).toBe(true)
    expect(installed.files.filter((path) => path.endsWith('.js')).length).toBeGreaterThan(350)
    expect(installed.sizeBytes).toBeLessThan(3 * 1024 ** 2)
  })

  test('contains every file listed in its exports', () => {
    const named = Object.values(manifest.exports).flatMap((one) =>
      typeof one === 'string' ? [one] : Object.values(one),
    )
    expect(named.length).toBeGreaterThan(7)
    expect(named.filter((path) => !installed.files.includes(path.slice(2)))).toEqual([])
  })

  test('depends only on packages that its files import and imports nothing from outside the package', async () => {
    const wanted = new Set<string>()
    const imported = /(?:\bfrom |\bimport\(|^import )['"]([^.'"][^'"]*)['"](?:;|\)|$)/gm
    for (const path of installed.files.filter((name) =>
      /^(src|client|packages)\/.*\.(js|d\.ts)$/.test(name),
    )) {
      for (const [, name = ''] of (await readText(path)).matchAll(imported))
        wanted.add(name.split('/', name.startsWith('@') ? 2 : 1).join('/'))
    }
    expect(wanted.size).toBeGreaterThan(15)
    const given = { ...manifest.dependencies, ...manifest.peerDependencies }
    const isThere = (name: string) =>
      name.startsWith('node:') || builtinModules.includes(name) || name in given
    expect([...wanted].filter((name) => !isThere(name))).toEqual([])
    expect(Object.keys(manifest)).toEqual(expect.arrayContaining(['engines', 'publishConfig']))
    for (const name of ['private', 'scripts', 'devDependencies', 'optionalDependencies', 'overrides'])
      expect(Object.keys(manifest)).not.toContain(name)
  })

  test('does not contain source maps or paths from the build machine', async () => {
    const places = [repository, await realpath(repository), `${homedir()}/`, `${installed.folder}/`]
    for (const path of installed.files.filter((name) => !/\.(br|gz)$/.test(name))) {
      const text = await readText(path)
      expect([path, places.filter((place) => text.includes(place))]).toEqual([path, []])
      if (/\.(js|css|d\.ts)$/.test(path))
        expect([path, /sourceMappingURL=|file:\/\/\//.exec(text)]).toEqual([path, null])
    }
  })
})

describe('a project that installs the package', () => {
  test('can run examples/library.mjs', async () => {
    await installed.write('library.mjs', await readFile(join(repository, 'examples/library.mjs'), 'utf8'))
    expect(await installed.run('node', 'library.mjs')).toBe('The tool answered: Welcome, Ada!\n')
  })

  test('can render the chat component to HTML with its own React', async () => {
    await installed.write('page.mjs', renderedPage)
    expect(await installed.run('node', 'page.mjs')).toMatch(
      /^<main><output>\{.*"isReady":false.*\}<\/output><\/main>$/,
    )
  })

  test("type-checks against the package's types", async () => {
    await installed.write('typed.ts', typedProgram)
    await installed.write('tsconfig.json', typedProject)
    expect(await installed.run(join(repository, 'node_modules/.bin/tsc'), '-p', '.')).toBe('')
  })

  test('can run the `parley` command', async () => {
    const { version } = JSON.parse(await readText('package.json')) as { version: string }
    expect(await installed.run('npx', '--no-install', 'parley', 'version')).toBe(`${version}\n`)
    expect(await installed.run('npx', '--no-install', 'parley', 'openapi', '--check')).toBe('')
  })
})

test('the installed `parley serve` serves its pages, scripts, docs and examples, and converts an image', async () => {
  const main = join(installed.folder, 'node_modules/.bin/parley')
  const server = await startServer({ folder: await makeFolder(), main })
  const get = async (path: string) => {
    const response = await fetch(server.url + path)
    return { status: response.status, text: await response.text() }
  }
  await server.prints(/npx parley sign-in` prints another/)
  expect(await get('/readyz')).toMatchObject({ status: 200, text: expect.stringContaining('"ready"') })
  const page = await get('/console')
  const [script = ''] = /\/console\/assets\/main-[\w-]+\.js/.exec(page.text) ?? []
  const paths = [
    script,
    '/embed/parley.js',
    '/docs',
    '/docs/page.js',
    '/openapi.json',
    '/llms.txt',
    '/docs/security',
    '/docs/security.md',
    '/examples/webhook-slack.mjs',
    '/demo',
  ]
  for (const path of paths) expect([path, (await get(path)).status]).toEqual([path, 200])

  const target = { url: server.url, key: server.key as string, fetch }
  const background = { r: 200, g: 30, b: 60 }
  const picture = await sharp({ create: { width: 64, height: 48, channels: 3, background } })
    .png()
    .toBuffer()
  const { id } = await uploadWhole(target, picture, { metadata: { filename: 'a.png', kind: 'thumbnail' } })
  expect((await readStatus(target, id)).conversion).toEqual({ result: 'converted' })
  expect((await sharp(await readArtifact(target, id)).metadata()).format).toMatch(/^(jpeg|webp)$/)
  const { code, signal, stderr } = await server.stop()
  expect({ code, signal }).toEqual({ code: 0, signal: null })
  expect(stderr).not.toMatch(/Error|DeprecationWarning/)
})

test('the `parley` command rejects an outdated Node with a one-sentence error', async () => {
  const older =
    "data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'22.11.0'}})"
  const sentence = 'Parley needs Node 24 or newer; this is 22.11.0.'
  const command = installed.run('node', '--import', older, 'node_modules/.bin/parley', 'version')
  await expect(command).rejects.toMatchObject({ code: 1, stderr: `parley: ${sentence}\n` })
  await installed.write(
    'older.mjs',
    "await import('parley').catch(({ message }) => process.stdout.write(message))",
  )
  expect(await installed.run('node', '--import', older, 'older.mjs')).toBe(sentence)
})
