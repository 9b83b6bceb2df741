/** Tests `/metrics` with PostgreSQL and with several workers on one port. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { promisedMetrics } from '../support/observability-doc.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { makeFolder, startParley } from '../support/process.ts'
import { parseMetrics, type ScrapedMetrics, scrape } from '../support/scrape.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 180_000 })

const requests = 'parley_http_request_duration_seconds_count'
const validations = (metrics: ScrapedMetrics) => metrics.sum(requests, { operation: 'keys.validate' })

/** Sends a GET request over a new connection, which the next worker accepts. */
async function getOnNewConnection(url: string, key?: string): Promise<string> {
  const headers = key === undefined ? {} : { Authorization: `Bearer ${key}` }
  const [response] = (await once(get(url, { agent: false, headers }), 'response')) as [IncomingMessage]
  const body = await text(response)
  if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${body}`)
  return body
}

const scrapeOnNewConnection = async (url: string) => parseMetrics(await getOnNewConnection(`${url}/metrics`))

async function listChildren(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.trim().split(/\s+/).map(Number)
}

test('a service on PostgreSQL reports metrics of its connection pool and its coordination store', async () => {
  const app = await startApp({ DATABASE_URL: await createTestDatabase() })
  const metrics = await scrape(app.url)
  expect(metrics.sum('parley_database_connections')).toBeGreaterThan(0)
  expect(metrics.sum('parley_database_waiting')).toBe(0)
  expect(metrics.sum('parley_shared_state_up', { store: 'replicas' })).toBe(1)
  const { body } = await app.call('GET', '/readyz')
  expect(body).toMatchObject({ status: 'ready', checks: { database: 'up', replicas: 'up' } })
})

test('each worker reports metrics of all workers and the number of workers that do not respond', async () => {
  const env = { PORT: '0', DATABASE_URL: await createTestDatabase('empty') }
  const running = startParley(['serve', '--workers', '2'], { folder: await makeFolder(), env })
  const [, url = ''] = await running.prints(/listening on (http:\S+)\n/)
  const [key] = await running.prints(/svc_[0-9A-Za-z]{61}/)
  for (let call = 0; call < 12; call++) {
    await getOnNewConnection(`${url}/v1/keys/validate`, key)
  }
  const scrapes = [
    await scrapeOnNewConnection(url),
    await scrapeOnNewConnection(url),
    await scrapeOnNewConnection(url),
  ]
  for (const metrics of scrapes) {
    expect(validations(metrics)).toBe(12)
    expect(metrics.sum('parley_workers', { state: 'answered' })).toBe(2)
    expect(metrics.sum('parley_workers', { state: 'silent' })).toBe(0)
    expect(metrics.sum('parley_build_info')).toBe(1)
    expect(metrics.sum('parley_uploads_open')).toBe(0)
    // Two Node processes together use more than 100 MB.
    expect(metrics.sum('process_resident_memory_bytes')).toBeGreaterThan(100_000_000)
  }
  const promised = promisedMetrics.filter(({ name }) => !scrapes[0]?.types.has(name))
  expect(promised.map(({ name }) => name)).toEqual([])
  const silent = (await listChildren(running.pid))[0] as number
  process.kill(silent, 'SIGSTOP')
  try {
    const first = await Promise.any([
      scrapeOnNewConnection(url),
      scrapeOnNewConnection(url),
      scrapeOnNewConnection(url),
    ])
    expect(first.sum('parley_workers', { state: 'answered' })).toBe(1)
    expect(first.sum('parley_workers', { state: 'silent' })).toBe(1)
  } finally {
    process.kill(silent, 'SIGCONT')
  }
  running.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ code: 0 })
})
