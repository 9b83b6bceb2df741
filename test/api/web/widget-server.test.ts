/** Tests how the server delivers the widget's files and controls which pages may embed its frame. */
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseSync } from 'vite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { StartupError } from '../../../src/lib/errors.ts'
import { loadWidget } from '../../../src/web/widget-files.ts'
import { GREETER, startApp, type TestApp } from '../../support/app.ts'
import { createFakeClock } from '../../support/fake-clock.ts'

const KIB = 1024

interface Asset {
  readonly file: string
  readonly integrity: string
  readonly gzipBytes: number
}

const WIDGET = join(import.meta.dirname, '../../../dist/widget')

type Manifest = Record<'extras' | 'loader' | 'frameScript' | 'frameStyle' | 'frameWorker', Asset> & {
  readonly frameChunks: readonly Asset[]
}

async function readManifest(): Promise<Manifest> {
  return JSON.parse(await readFile(join(WIDGET, 'manifest.json'), 'utf8'))
}

/** Returns the scripts that a browser loads before it runs `script`, without `script` itself. */
async function listStaticImports({ file }: Asset, found = new Set<Asset>()): Promise<ReadonlySet<Asset>> {
  const { frameChunks } = await readManifest()
  const { module } = parseSync(file, await readFile(join(WIDGET, file), 'utf8'))
  const names = [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) => entries.map((entry) => entry.moduleRequest?.value)),
  ]
  for (const name of names) {
    if (name === undefined || [...found].some((asset) => name.endsWith(asset.file))) continue
    const imported = frameChunks.find((chunk) => name.endsWith(chunk.file))
    if (imported === undefined) throw new Error(`${file} imports ${name}, which is not in the manifest`)
    found.add(imported)
    await listStaticImports(imported, found)
  }
  return found
}

const get = (app: TestApp, path: string, init?: RequestInit) => app.fetch(app.url + path, init)

const ancestorsOf = async (app: TestApp, query: string) => {
  const policy = (await get(app, `/embed/frame${query}`)).headers.get('content-security-policy')
  return /frame-ancestors ([^;]*)/.exec(policy ?? '')?.[1]
}

const publicPartOf = (key: string) => key.slice(0, 'agnt_key-'.length + 12)

test("the widget's loader can be read by any page and cached for five minutes", async () => {
  const app = await startApp()
  const { status, headers } = await get(app, '/embed/parley.js')
  expect(status).toBe(200)
  expect(Object.fromEntries(headers)).toMatchObject({
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=300',
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
    'x-content-type-options': 'nosniff',
  })
})

test("the widget's versioned loader is immutable and matches its digest", async () => {
  const app = await startApp()
  const { loader } = await readManifest()
  const copy = await get(app, `/embed/${loader.file}`)
  const body = Buffer.from(await copy.arrayBuffer())
  expect(copy.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect(`sha384-${createHash('sha384').update(body).digest('base64')}`).toBe(loader.integrity)
  expect(body).toEqual(Buffer.from(await (await get(app, '/embed/parley.js')).arrayBuffer()))
})

test.each([
  ['br', 'gzip, deflate, br, zstd'],
  ['gzip', 'gzip, deflate'],
  ['gzip', 'br;q=0, gzip'],
  [null, 'identity'],
])(
  "the widget's files are sent with the encoding %s to a browser that accepts %s",
  async (encoding, accepted) => {
    const app = await startApp()
    const { loader, frameScript } = await readManifest()
    for (const path of ['/embed/parley.js', `/embed/${loader.file}`, `/embed/${frameScript.file}`]) {
      const { headers } = await get(app, path, { headers: { 'Accept-Encoding': accepted } })
      expect([headers.get('content-encoding'), headers.get('vary')]).toEqual([encoding, 'Accept-Encoding'])
    }
  },
)

test("the widget's second script is also served without a version, for pages that were loaded before an update", async () => {
  const app = await startApp()
  const { extras } = await readManifest()
  const current = await get(app, '/embed/extras.js')
  expect(current.headers.get('cache-control')).toBe('public, max-age=300')
  expect(current.headers.get('access-control-allow-origin')).toBe('*')
  expect(await current.text()).toBe(await (await get(app, `/embed/${extras?.file}`)).text())
})

test("a page with Cross-Origin-Embedder-Policy can embed the widget's frame", async () => {
  const app = await startApp()
  expect(Object.fromEntries((await get(app, '/embed/frame')).headers)).toMatchObject({
    'cross-origin-embedder-policy': 'require-corp',
    'cross-origin-resource-policy': 'cross-origin',
  })
})

test("the widget's frame may load remote images only from the hosts that the agent lists", async () => {
  const app = await startApp()
  const readFrame = async (more: string) => {
    const { agent_key: key } = await app.createAgent(`name: A\ninstructions: B\n${more}`)
    const { headers } = await get(app, `/embed/frame?key=${key.slice(0, 21)}`)
    const images = /img-src ([^;]*)/.exec(headers.get('content-security-policy') ?? '')?.[1]
    return { images, isolation: headers.get('cross-origin-embedder-policy') }
  }
  expect(await readFrame('')).toEqual({ images: "'self' data: blob:", isolation: 'require-corp' })
  expect(await readFrame('embed: { imageHosts: [Images.example.org, "*.example.net"] }')).toEqual({
    images: "'self' data: blob: https://images.example.org https://*.example.net",
    // Images from other hosts rarely have the header that `require-corp` requires.
    isolation: 'credentialless',
  })
})

test("a browser with a current copy of the widget's loader receives 304", async () => {
  const app = await startApp()
  const etag = (await get(app, '/embed/parley.js')).headers.get('etag') ?? ''
  const again = (tag: string) => get(app, '/embed/parley.js', { headers: { 'If-None-Match': tag } })
  for (const tag of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    const answer = await again(tag)
    expect([answer.status, await answer.text(), answer.headers.get('etag')]).toEqual([304, '', etag])
  }
  expect((await again('"x"')).status).toBe(200)
})

test("the widget's routes return only headers to HEAD and a standard error to other methods and paths", async () => {
  const app = await startApp()
  for (const path of ['/embed/parley.js', '/embed/frame', '/demo']) {
    const head = await get(app, path, { method: 'HEAD' })
    expect([head.status, Number(head.headers.get('content-length')) > 100, await head.text()]).toEqual([
      200,
      true,
      '',
    ])
    expect(await app.call('POST', path)).toMatchObject({
      status: 405,
      body: { error: { code: 'method_not_allowed' } },
    })
  }
  for (const path of [
    '/embed',
    '/embed/',
    '/embed/react.js',
    '/embed/manifest.json',
    '/embed/..%2fmanifest.json',
  ]) {
    expect(await app.call('GET', path)).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
  }
})

test("the widget's frame is never cached and may connect only to its server", async () => {
  const app = await startApp()
  const { headers } = await get(app, '/embed/frame')
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('x-frame-options')).toBeNull()
  expect(headers.get('permissions-policy')).toBe('camera=(), microphone=(), geolocation=()')
  expect(headers.get('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
      "connect-src 'self'; form-action 'none'; base-uri 'none'; object-src 'none'; frame-ancestors *; " +
      "require-trusted-types-for 'script'",
  )
})

test("only the server's own pages may embed the trial frame, which may not connect to any server", async () => {
  const app = await startApp()
  const answer = await get(app, '/embed/trial')
  const policy = answer.headers.get('content-security-policy')
  expect(policy).toContain("connect-src 'none';")
  expect(policy).toContain("frame-ancestors 'self';")
  expect(await answer.text()).toContain('<html lang="en" data-trial ')
})

test('the trial frame loads images only from the HTTPS origins in its address', async () => {
  const app = await startApp()
  const query = new URLSearchParams(
    [
      'https://img.example:8443',
      "https://x.example; script-src 'unsafe-inline'",
      'http://plain.example',
      '*',
    ].map((origin) => ['image', origin]),
  )
  const answer = await get(app, `/embed/trial?${query}`)
  expect(answer.headers.get('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob: https://img.example:8443; " +
      "font-src 'self'; connect-src 'none'; form-action 'none'; base-uri 'none'; object-src 'none'; " +
      "frame-ancestors 'self'; require-trusted-types-for 'script'",
  )
})

test("the operator's widget settings appear in the frame's CSP and HTML", async () => {
  const app = await startApp({
    PARLEY_WIDGET_CONNECT_ORIGINS: 'https://one.example,http://two.example:8080/',
    PARLEY_WIDGET_ALLOW_PROVIDER_KEY: 'true',
  })
  const answer = await get(app, '/embed/frame')
  const origins = 'https://one.example http://two.example:8080'
  expect(answer.headers.get('content-security-policy')).toContain(`connect-src 'self' ${origins};`)
  expect(await answer.text()).toContain(`data-connect-origins="${origins}" data-allow-provider-key="true"`)
})

test('an agent with embed.origins can be embedded only on pages of those origins', async () => {
  const app = await startApp()
  const origins =
    'embed: { origins: [https://shop.example, "https://*.shop.example", http://localhost:8080] }\n'
  const { agent_key: locked } = await app.createAgent(GREETER + origins)
  const { agent_key: open } = await app.createAgent(GREETER)
  expect(await ancestorsOf(app, `?key=${publicPartOf(locked)}`)).toBe(
    "'self' https://shop.example https://*.shop.example http://localhost:8080",
  )
  expect(await ancestorsOf(app, `?key=${publicPartOf(open)}`)).toBe('*')
})

test('the frame of an unknown agent key can be embedded on any page', async () => {
  const app = await startApp()
  const { agent_key } = await app.createAgent(`${GREETER}embed: { origins: [https://shop.example] }\n`)
  const unknown = [
    '',
    '?key=',
    '?key=agnt_key-000000000000',
    `?key=${agent_key}`,
    "?key=x'; script-src *",
    '?key=%00',
  ]
  for (const query of unknown) expect(await ancestorsOf(app, query)).toBe('*')
})

test('a change of embed.origins applies immediately in this process and within two seconds in others', async () => {
  const clock = createFakeClock()
  const app = await startApp({}, { clock })
  const { agent_id, agent_key } = await app.createAgent(
    `${GREETER}embed: { origins: [https://one.example] }\n`,
  )
  const ancestors = () => ancestorsOf(app, `?key=${publicPartOf(agent_key)}`)
  expect(await ancestors()).toBe("'self' https://one.example")
  const yaml = `${GREETER}embed: { origins: [https://two.example] }\n`
  await app.call('PUT', `/v1/agents/${agent_id}`, { body: { yaml } })
  expect(await ancestors()).toBe("'self' https://two.example")
  // Writes the definition directly to the database, as another process would.
  const source = `${GREETER}embed: { origins: [https://three.example] }\n`
  await app.service.deps.db.updateTable('agents').set({ source, version: 3 }).execute()
  expect(await ancestors()).toBe("'self' https://two.example")
  clock.advance(2.001)
  expect(await ancestors()).toBe("'self' https://three.example")
  await app.call('DELETE', `/v1/agents/${agent_id}`)
  expect(await ancestors()).toBe('*')
})

describe("an agent's theme", () => {
  const THEMED = `${GREETER}embed: { theme: { primaryColor: '#0f766e', colorScheme: dark, avatar: 'https://images.example/a.png' } }\n`

  test("precedes the loader's code if the loader's URL contains the agent's key", async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent(THEMED)
    const key = publicPartOf(agent_key)
    const response = await get(app, `/embed/parley.js?key=${key}`)
    const loader = await (await get(app, '/embed/parley.js')).text()
    const theme = '{"primaryColor":"#0f766e","theme":"dark"}'
    expect(await response.text()).toBe(
      `(window[Symbol.for('parley.agents')]??={})["${key}"]=${theme};\n${loader}`,
    )
    expect(response.headers.get('cache-control')).toBe('public, max-age=300')
    const again = await get(app, `/embed/parley.js?key=${key}`, {
      headers: { 'If-None-Match': response.headers.get('etag') ?? '' },
    })
    expect(again.status).toBe(304)
  })

  test('is also available as a separate script, which is empty for an unknown key', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent(THEMED)
    const read = async (key: string) => (await get(app, `/embed/frame.js?key=${key}`)).text()
    expect(await read(publicPartOf(agent_key))).toContain('#0f766e')
    expect(await read('agnt_key-AAAAAAAAAAAA')).toMatch(/=\{\};\n$/)
    expect(await read("x'];alert(1)")).not.toContain('alert')
  })

  test('cannot be imported by pages that may not show the frame', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent(`${GREETER}embed: { origins: [https://shop.example] }\n`)
    const read = (headers: Record<string, string>) =>
      get(app, `/embed/frame.js?key=${publicPartOf(agent_key)}`, { headers })
    const allowed = await read({ Origin: 'https://shop.example' })
    expect([allowed.status, allowed.headers.get('vary')]).toEqual([200, 'Accept-Encoding, Origin'])
    const other = await read({ Origin: 'https://other.example' })
    expect([other.status, other.headers.get('cache-control')]).toEqual([403, 'no-store'])
    expect((await read({})).status).toBe(200)
    expect((await read({ Origin: app.url })).status).toBe(200)
  })

  test('lets the frame load its images but no others', async () => {
    const app = await startApp()
    const { agent_key } = await app.createAgent(THEMED)
    const policy = async (key: string) =>
      (await get(app, `/embed/frame?key=${key}`)).headers.get('content-security-policy')
    expect(await policy(publicPartOf(agent_key))).toContain(
      "img-src 'self' data: blob: https://images.example;",
    )
    expect(await policy('')).toContain("img-src 'self' data: blob:;")
  })
})

test("the widget's compressed loader is at most 6 KiB and its compressed frame at most 88 KiB", async () => {
  const { loader, frameScript, frameStyle } = await readManifest()
  expect(loader.gzipBytes).toBeLessThanOrEqual(6 * KIB)
  const frame = [frameStyle, frameScript, ...(await listStaticImports(frameScript))]
  expect(frame.reduce((sum, { gzipBytes }) => sum + gzipBytes, 0)).toBeLessThanOrEqual(88 * KIB)
})

test.each(['frameScript', 'frameWorker'] as const)(
  "the widget's %s runs without loading other scripts first",
  async (name) => {
    const manifest = await readManifest()
    expect([...(await listStaticImports(manifest[name]))]).toEqual([])
  },
)

test('the startup error for a missing widget build names the build command', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'parley-widget-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const failure = await loadWidget(pathToFileURL(`${folder}/`)).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(StartupError)
  expect(String(failure)).toContain('npm run build')
})
