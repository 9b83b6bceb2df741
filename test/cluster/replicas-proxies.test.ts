/** Tests the nginx and Caddy configurations in `deploy/` with two replicas. */
import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { findFreePort } from '../support/free-port.ts'
import { type RunningProxy, startCaddy, startNginx } from '../support/proxies.ts'
import {
  type HttpVersion,
  httpVersions,
  makeBody,
  makeFetch,
  openRequest,
  type ProxyHarness,
  postJson,
  startFakeReplica,
  startProxyHarness,
  statusOf,
} from '../support/proxy-harness.ts'
import {
  BODY_TYPE,
  createUpload,
  expectProtocol,
  patchUpload,
  readArtifact,
  readStatus,
  type Target,
  toMetadata,
  tus,
  waitForState,
} from '../support/uploads.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const CHAT = '/v1/chat/completions'
const AUTH_FAILURES = 3
const MIB = 1024 ** 2
/** Divides nginx timeouts by 100, except `fail_timeout`, which must be in whole seconds. */
const shorten = (text: string) => text.replaceAll(/(?<= )(\d+)s;/g, (_, seconds) => `${seconds * 10}ms;`)
/** Removes active health checks from a Caddy configuration. */
const withoutHealthChecks = (text: string) => text.replaceAll(/^\t+health_.*\n/gm, '')
/** Changes to a proxy's configuration that make it use a failed replica again immediately. */
const retryAtOnce = {
  nginx: (text: string) => text.replaceAll('max_fails=1', 'max_fails=0'),
  Caddy: (text: string) => text.replace('fail_duration 5s', 'fail_duration 10ms'),
}

let harness: ProxyHarness
beforeAll(async () => {
  harness = await startProxyHarness({
    PARLEY_HEARTBEAT_SECONDS: '0.1',
    PARLEY_RATE_LIMIT_AUTH_FAILURES: String(AUTH_FAILURES),
  })
})
afterAll(() => harness.stop())

const chat = (content: string, stream = true) => ({
  model: 'up-chat',
  stream,
  messages: [{ role: 'user', content }],
})

function targetOf(proxy: RunningProxy, localAddress?: string): Target {
  return { url: proxy.url, key: harness.key, fetch: makeFetch(harness.certificate, localAddress) }
}

async function call(target: Target, method: string, path: string, headers = {}, body?: object) {
  const response = await target.fetch(target.url + path, {
    method,
    headers: { Authorization: `Bearer ${target.key}`, 'Content-Type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text }
}

describe.each([
  ['nginx', startNginx, '127.0.1'],
  ['Caddy', startCaddy, '127.0.2'],
] as const)('%s', (name, start, network) => {
  let proxy: RunningProxy
  beforeAll(async () => {
    proxy = await start(harness.certificate, harness)
  })
  afterAll(() => proxy?.stop())

  const ask = (version: HttpVersion, body: object) =>
    postJson(version, proxy.url, harness.certificate, { path: CHAT, key: harness.key, body })

  test.each(httpVersions)('forwards a stream without buffering (%s)', async (version) => {
    // The model provider does not send anything after the first word.
    const content = `Stream ${name} ${version} {{up:hang-after 2}}`
    const reading = ask(version, chat(content))
    await reading.receives(/"content":"\w/)
    await reading.receives(/(: keep-alive\n\n){2}/)
    expect((await harness.upstream.waitForRequest(content)).endedBy).toBe(null)
  })

  test.each(httpVersions)('aborts the upstream request when the client disconnects (%s)', async (version) => {
    // The model provider sends nothing, so the server cannot notice the disconnect through a failed write.
    const content = `Leave ${name} ${version} {{up:hang}}`
    const reading = ask(version, chat(content, false))
    const { id } = await harness.upstream.waitForRequest(content)
    reading.leave()
    expect((await harness.upstream.waitForEnd(id)).endedBy).toBe('client')
  })

  test('forwards uploads without buffering and with the tus headers', async () => {
    const target = targetOf(proxy)
    const bytes = randomBytes(9 * MIB)
    const begun = await createUpload(target, { size: bytes.length, metadata: { filename: 'noise.bin' } })
    const { body, push, end } = makeBody()
    const answering = patchUpload(target, begun, 0, body)
    push(bytes.subarray(0, -10))
    await expect
      .poll(async () => (await readStatus(target, begun.id)).bytesReceived)
      .toBeGreaterThan(8 * MIB - 1)
    expect(await readdir(proxy.bodyFolder)).toEqual([])
    push(bytes.subarray(-10))
    end()
    const answer = await answering
    expect([answer.status, answer.headers.get('upload-offset')]).toEqual([204, String(bytes.length)])
    expectProtocol(answer)
    await waitForState(target, begun.id, 'ready')
    expect((await readArtifact(target, begun.id)).equals(bytes)).toBe(true)
  })

  test('supports Expect: 100-continue and forwards early error responses', async () => {
    const headers = {
      ...tus,
      'Upload-Length': '10',
      'Upload-Metadata': toMetadata({ filename: 'noise.bin' }),
      'Content-Type': BODY_TYPE,
      'Content-Length': '10',
    }
    const asked = { method: 'POST', path: '/upload', localAddress: `${network}.1` }
    const known = { Authorization: `Bearer ${harness.key}`, Expect: '100-continue' }
    const patient = openRequest(proxy.url, harness.certificate, {
      ...asked,
      headers: { ...headers, ...known },
    })
    patient.once('continue', () => patient.end(randomBytes(10)))
    patient.flushHeaders()
    expect(await statusOf(patient)).toBe(201)
    const unknown = openRequest(proxy.url, harness.certificate, { ...asked, headers })
    unknown.write('half ')
    expect(await statusOf(unknown)).toBe(401)
  })

  test('replaces a forged X-Forwarded-For header', async () => {
    let calls = 0
    const callFrom = (from: string) => {
      const forged = { Authorization: 'Bearer svc_nobody', 'X-Forwarded-For': `192.0.2.${calls++}` }
      return call(targetOf(proxy, from), 'GET', '/v1/models', forged)
    }
    for (let turn = 0; turn < AUTH_FAILURES; turn++) expect((await callFrom(`${network}.2`)).status).toBe(401)
    expect((await callFrom(`${network}.2`)).status).toBe(429)
    expect((await callFrom(`${network}.3`)).status).toBe(401)
  })

  test('removes forged identity headers', async () => {
    const me = '/v1/manager/me'
    const identity = { 'X-Email': 'ada@example.org', 'X-User': 'ada', 'X-Groups': 'admins' }
    const direct = await fetch(harness.apps[0].url + me, { headers: identity })
    expect(direct.status).toBe(200)
    const target = targetOf(proxy, `${network}.4`)
    const ask = (headers: object) =>
      target.fetch(target.url + me, { headers: { ...headers } }).then(({ status }) => status)
    expect(await ask(identity)).toBe(401)
    expect(await ask({ X_Email: 'ada@example.org' })).toBeOneOf([400, 401])
  })

  test("serves the widget's scripts and styles as the server compressed them", async () => {
    const { fetch, url } = targetOf(proxy)
    const frame = await (await fetch(`${url}/embed/frame`)).text()
    const files = [...frame.matchAll(/(?:href|src)="(\/embed\/[^"]+\.(?:js|css))"/g)].map(([, path]) => path)
    expect(files.length).toBeGreaterThan(1)
    for (const path of ['/embed/parley.js', ...files])
      for (const encoding of ['br', 'gzip']) {
        const response = await fetch(url + path, { headers: { 'Accept-Encoding': encoding } })
        expect([path, response.headers.get('content-encoding')]).toEqual([path, encoding])
        const whole = Buffer.byteLength(await response.text())
        expect(Number(response.headers.get('content-length'))).toBeLessThan(whole / 2)
      }
  })

  test('does not expose metrics or log tokens', async () => {
    const target = targetOf(proxy, `${network}.5`)
    const metrics = await call(target, 'GET', '/metrics')
    expect([metrics.status, metrics.headers.get('x-request-id')]).toEqual([404, null])
    const path = `/artifacts/${crypto.randomUUID()}/status`
    await call(target, 'GET', `${path}?token=not-for-logs`)
    await expect.poll(() => proxy.readLog()).toContain(path)
    for (const secret of ['not-for-logs', harness.key]) expect(await proxy.readLog()).not.toContain(secret)
  })

  test('retries a failed request on another replica only if it is a GET request', async () => {
    const { address, seen } = await startFakeReplica()
    const secondProxy = await start(harness.certificate, {
      replicas: [address, harness.replicas[0]],
      change: retryAtOnce[name],
    })
    const target = targetOf(secondProxy)
    const sawA = (method: string) => seen.some((line) => line.startsWith(`${method} /v1/agents`))
    const countAgents = async () => JSON.parse((await call(target, 'GET', '/v1/agents')).text).data.length
    try {
      while (!sawA('GET')) expect((await call(target, 'GET', '/v1/agents')).status).toBe(200)
      const before = await countAgents()
      const statuses: number[] = []
      while (!sawA('POST')) {
        statuses.push(
          (await call(target, 'POST', '/v1/agents', {}, { yaml: 'name: Once\ninstructions: Be.\n' })).status,
        )
      }
      expect(statuses.pop()).toBe(502)
      expect(new Set(statuses)).toEqual(new Set(statuses.map(() => 201)))
      expect(await countAgents()).toBe(before + statuses.length)
    } finally {
      await secondProxy.stop()
    }
  })

  test('forwards requests to another replica when one is unreachable', async () => {
    const gone = `127.0.0.1:${await findFreePort()}`
    const replicas = [gone, harness.replicas[0]] as const
    const secondProxy = await start(harness.certificate, { replicas, change: withoutHealthChecks })
    // Before version 2.11.2, Caddy cannot retry a request with a body (caddyserver/caddy#7547).
    const [method, path] = name === 'nginx' ? ['POST', CHAT] : ['GET', '/v1/models']
    const body = method === 'POST' ? chat('Good evening!', false) : undefined
    try {
      for (let turn = 0; turn < 10; turn++) {
        expect((await call(targetOf(secondProxy), method, path, {}, body)).status).toBe(200)
      }
    } finally {
      await secondProxy.stop()
    }
  })
})

test('Caddy does not send requests to a replica that fails its health check', async () => {
  const gone = `127.0.0.1:${await findFreePort()}`
  const caddy = await startCaddy(harness.certificate, { replicas: [gone, harness.replicas[0]] })
  try {
    await expect.poll(() => caddy.readLog()).toMatch(new RegExp(`HTTP request failed.*${gone}`))
    for (let turn = 0; turn < 10; turn++) {
      const { status } = await call(targetOf(caddy), 'POST', CHAT, {}, chat('Good evening!', false))
      expect(status).toBe(200)
    }
  } finally {
    await caddy.stop()
  }
})

test('nginx lets uploads and responses pause for longer than its default timeouts', async () => {
  const names = ['client_body_timeout', 'send_timeout', 'proxy_send_timeout', 'proxy_read_timeout']
  // nginx's default of 60 s, divided by 100 like the other timeouts.
  const around = names.map((name) => `${name} 600ms;`).join(' ')
  const leaveOut = (text: string) => text.replaceAll(new RegExp(`^ *(${names.join('|')}) .*\n`, 'gm'), '')
  const { replicas, certificate } = harness
  const ours = await startNginx(certificate, { replicas, around, change: shorten })
  const theirs = await startNginx(certificate, {
    replicas,
    around,
    change: (text) => shorten(leaveOut(text)),
  })
  try {
    const upload = async (target: Target) => {
      const begun = await createUpload(target, { size: 20, metadata: { filename: 'noise.bin' } })
      const { body, push, end } = makeBody()
      const answering = patchUpload(target, begun, 0, body).then(
        ({ status }) => status,
        () => 'cut off',
      )
      push(randomBytes(10))
      return { answering, push, end }
    }
    const [kept, lost] = [await upload(targetOf(ours)), await upload(targetOf(theirs))]
    expect(await lost.answering).toBeOneOf([408, 'cut off'])
    kept.push(randomBytes(10))
    kept.end()
    expect(await kept.answering).toBe(204)

    const ask = (proxy: RunningProxy) =>
      call(targetOf(proxy), 'POST', CHAT, {}, chat('{{up:slow-head 1500}} Late.', false))
    const answers = await Promise.all([ask(ours), ask(theirs)])
    expect(answers.map(({ status }) => status)).toEqual([200, 504])
  } finally {
    for (const proxy of [ours, theirs]) await proxy.stop()
  }
})
