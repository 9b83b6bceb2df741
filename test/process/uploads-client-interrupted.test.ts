/** tus-js-client and a connection that breaks again and again, with a server that is killed once: no byte is lost or doubled. */
import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Cut, CuttingProxy } from '../support/cutting-proxy.ts'
import { makeFolder, startServer } from '../support/process.ts'
import { createClientUpload } from '../support/tus-client.ts'
import { readArtifact, untilState } from '../support/uploads.ts'
import { createRandom } from '../support/upstream-sending.ts'

// It starts processes and moves many bytes, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

const MIB = 1024 ** 2
const SIZE = 128 * MIB
const INTERRUPTIONS = 20
/** What is done at each of them, in turns. */
const ways: readonly (Cut | 'abort')[] = ['reset', 'end', 'abort', 'end', 'reset']
/** At this one the server is killed. */
const KILL_AT = 11

/** One in each of as many stretches, somewhere in it. */
function choosePoints(seed: number): number[] {
  const random = createRandom(seed)
  const stretch = SIZE / (INTERRUPTIONS + 1)
  return Array.from({ length: INTERRUPTIONS }, (_, index) => Math.floor((index + random()) * stretch) + 1)
}

const digestOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

test('128 MiB arrive as they were sent, through twenty interruptions', async () => {
  const folder = await makeFolder()
  const start = () => startServer({ folder, env: { PARLEY_DATA_DIR: join(folder, 'data') } })
  let server = await start()
  const key = server.key as string
  const bytes = randomBytes(SIZE)
  const { promise: finished, resolve, reject } = Promise.withResolvers<void>()

  const proxy = await CuttingProxy.open(server.url, {
    points: choosePoints(20_261_121),
    onPoint(index) {
      if (index === KILL_AT) {
        proxy.leadTo(restart())
        return 'reset'
      }
      const way = ways[index % ways.length] as Cut | 'abort'
      if (way !== 'abort') return way
      goOn().catch(reject)
      return 'go on'
    },
  })
  onTestFinished(() => proxy.close())

  async function restart(): Promise<string> {
    server.kill('SIGKILL')
    await server.ended
    server = await start()
    return server.url
  }

  let current = createClientUpload(bytes, { url: proxy.url, key })
  const run = () => {
    current.done.then(resolve, reject)
    current.upload.start()
  }
  /** As a page does that was closed and opened again: of the upload it knows the address. */
  async function goOn(): Promise<void> {
    await current.upload.abort()
    current = createClientUpload(bytes, { url: proxy.url, key }, { uploadUrl: current.upload.url as string })
    run()
  }
  let id = ''
  current.upload.options.onAfterResponse = (_request, response) => {
    id ||= response.getHeader('X-Artifact-Id') ?? ''
  }
  run()
  await finished

  expect(proxy.passedPoints).toBe(INTERRUPTIONS)
  const target = { url: server.url, key, fetch }
  await untilState(target, id, 'ready')
  const received = await readArtifact(target, id)
  expect(digestOf(received)).toBe(digestOf(bytes))
  expect(received.equals(bytes)).toBe(true)
})
