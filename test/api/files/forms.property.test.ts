/** Tests, with generated forms, that multipart uploads are stored unchanged or rejected immediately. */

import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { collectUncaught, type SentForm, sendForm } from '../../support/broken-forms.ts'
import {
  BOUNDARY,
  download,
  field,
  filePart,
  formEnd,
  listStored,
  type Part,
  partHead,
  postFiles,
  purpose,
  toChunkStream,
  toForm,
} from '../../support/files.ts'
import { makeFolder } from '../../support/process.ts'

const pieces = [
  '--',
  '-',
  '\r\n',
  '\r',
  '\n',
  '\r\n\r\n',
  ': ',
  '',
  'x',
  `--${BOUNDARY}`,
  formEnd,
  'Content-Disposition: form-data; name="file"; filename="a"',
  'Content-Disposition: form-data; name="purpose"',
  'Content-Disposition: attachment',
  'Content-Type: text/plain',
]
const whole = toForm([purpose, filePart()]).toString('latin1')

/** A valid form with some bytes replaced by parts of other forms. */
const nearlyForm = fc
  .array(fc.tuple(fc.nat(whole.length), fc.nat(12), fc.constantFrom(...pieces)), {
    minLength: 1,
    maxLength: 3,
  })
  .map((edits) =>
    edits.reduce((text, [at, cut, piece]) => text.slice(0, at) + piece + text.slice(at + cut), whole),
  )
const noForm = fc
  .array(fc.constantFrom(...pieces), { maxLength: 12 })
  .map((list) => `--${BOUNDARY}${list.join('')}`)

test('a malformed form is rejected or parsed without waiting for a timeout', async () => {
  const dataDir = join(await makeFolder(), 'data')
  // The timeouts are so long that the test fails if a request waits for one of them.
  const app = await startApp({
    PARLEY_DATA_DIR: dataDir,
    PARLEY_BODY_IDLE_SECONDS: '600',
    PARLEY_RATE_LIMIT_PARENT: '0',
  })
  let fileCount = 0
  await fc.assert(
    fc.asyncProperty(fc.oneof(nearlyForm, noForm), async (text) => {
      const { status, body } = await postFiles(app, Buffer.from(text, 'latin1'))
      expect([200, 400]).toContain(status)
      if (status === 200) fileCount += 1
      else expect(body.error.code).toBe('invalid_value')
    }),
    { numRuns: 400 },
  )
  const { kept, incoming } = await listStored(dataDir)
  expect(incoming).toEqual([])
  expect(kept).toHaveLength(fileCount)
})

/** Valid and invalid parts, with bodies from empty to larger than the parser's buffers. */
const anyPart: fc.Arbitrary<Part> = fc.oneof(
  fc.constant(purpose),
  fc.constantFrom(0, 1, 4_097, 70_000, 150_000).map((size) => filePart(Buffer.alloc(size, '\r\n-'))),
  fc.constantFrom('x', '', 'x'.repeat(5_000), 'x'.repeat(70_000)).map((body) => field('purpose', body)),
  fc.constantFrom('x', 'name="a\nb"', 'name="\u00ff', 'name=file; filename*=x').map((disposition) => ({
    disposition,
    body: 'x'.repeat(66_000),
  })),
  fc.constantFrom(...pieces).map((body) => ({ disposition: 'name="f"', body })),
)

/**
 * A form with random parts, sent in chunks of random sizes; most are truncated or contain part of another
 * form.
 */
const sentForm: fc.Arbitrary<SentForm> = fc
  .record({
    parts: fc.oneof(
      fc.array(anyPart, { maxLength: 14 }),
      fc.nat(9).map((count) => [...Array(count).fill(field('f', 'x')), filePart(Buffer.alloc(100_000))]),
    ),
    insert: fc.option(fc.tuple(fc.nat(1_000), fc.constantFrom(...pieces))),
    cut: fc.option(fc.nat(1_000), { freq: 3 }),
    pieceSizes: fc.array(fc.constantFrom(20_000, 40_000, 65_536, 500_000), { minLength: 1, maxLength: 3 }),
    edge: fc.nat(200),
    framing: fc.constantFrom('length', 'chunked', 'half-closed', 'reset'),
  })
  .map(({ parts, insert, cut, pieceSizes, edge, framing }) => {
    let body = toForm(parts)
    if (insert !== null) {
      const at = Math.floor((body.length * insert[0]) / 1_000)
      body = Buffer.concat([body.subarray(0, at), Buffer.from(insert[1]), body.subarray(at)])
    }
    // Small values of `cut` remove bytes from the last part and its boundary.
    if (cut !== null) body = body.subarray(0, cut < 500 ? -cut : Math.floor((body.length * cut) / 1_000))
    return { body, pieceSizes: [partHead(purpose).length + edge, ...pieceSizes], framing }
  })

test('a form does not crash the process, however it is truncated and framed', async () => {
  const uncaught = collectUncaught()
  const dataDir = join(await makeFolder(), 'data')
  const app = await startApp({
    PARLEY_DATA_DIR: dataDir,
    PARLEY_BODY_IDLE_SECONDS: '600',
    PARLEY_RATE_LIMIT_PARENT: '0',
  })
  await fc.assert(
    fc.asyncProperty(fc.array(sentForm, { minLength: 10, maxLength: 10 }), async (forms) => {
      const answers = await Promise.all(forms.map((form) => sendForm(app, form)))
      for (const [index, form] of forms.entries()) {
        const isWhole = form.framing === 'length' || form.framing === 'chunked'
        if (isWhole) expect([200, 400]).toContain(answers[index]?.status)
      }
      expect(uncaught).toEqual([])
    }),
    { numRuns: 200, endOnFailure: true },
  )
  expect((await postFiles(app, Buffer.from(whole, 'latin1'))).status).toBe(200)
  await expect.poll(async () => (await listStored(dataDir)).incoming).toEqual([])
  const { kept } = await listStored(dataDir)
  expect((await app.call('GET', '/v1/files')).body.data).toHaveLength(kept.length)
  expect(uncaught).toEqual([])
}, 60_000)

/** Bytes that contain many near-matches of the boundary. */
const trickyBytes = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        Buffer.from('\r\n'),
        Buffer.from('\r'),
        Buffer.from('--'),
        Buffer.from(`\n--${BOUNDARY}`),
        Buffer.from(`\r\n--${BOUNDARY.slice(0, -1)}`),
        Buffer.from(`--${BOUNDARY}--`.slice(1)),
      ),
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
      fc.nat(70_000).map((size) => Buffer.alloc(size, '\r\n-')),
    ),
    { maxLength: 8 },
  )
  .map((list) => Buffer.concat(list))
  .filter((bytes) => !`\r\n${bytes.toString('latin1')}\r\n`.includes(`\r\n--${BOUNDARY}`))

test('a downloaded file equals the uploaded file', async () => {
  const app = await startApp({ PARLEY_RATE_LIMIT_PARENT: '0' })
  await fc.assert(
    fc.asyncProperty(trickyBytes, fc.integer({ min: 40, max: 100_000 }), async (bytes, pieceSize) => {
      const form = toForm([purpose, filePart(bytes)])
      const { status, body } = await postFiles(app, toChunkStream(form, pieceSize))
      expect([status, body.bytes]).toEqual([200, bytes.length])
      const content = Buffer.from(await (await download(app, body.id)).arrayBuffer())
      expect(content.equals(bytes)).toBe(true)
    }),
    { numRuns: 60 },
  )
})
