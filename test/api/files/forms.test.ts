/** Tests which multipart forms are accepted for file uploads, and the errors for invalid ones. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../support/app.ts'
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
  upload,
} from '../../support/files.ts'
import { makeFolder } from '../../support/process.ts'

interface Setup {
  readonly app: TestApp
  readonly dataDir: string
}

async function startWithDataDir(env: Readonly<Record<string, string>> = {}): Promise<Setup> {
  const dataDir = join(await makeFolder(), 'data')
  return { app: await startApp({ ...env, PARLEY_DATA_DIR: dataDir }), dataDir }
}

const emptyStore = { kept: [], incoming: [] }

async function contentOf(app: TestApp, id: string): Promise<string> {
  return (await download(app, id)).text()
}

describe('a form', () => {
  const expiry = [field('expires_after[anchor]', 'created_at'), field('expires_after[seconds]', '3600')]
  const orders: readonly (readonly Part[])[] = [
    [filePart(), purpose, ...expiry],
    [purpose, filePart(), ...expiry],
    [...expiry, purpose, filePart()],
    [expiry[1] as Part, filePart(), purpose, expiry[0] as Part],
  ]

  test.each(orders.map((parts, index) => [index, parts] as const))(
    'is accepted with its parts in any order (case %i)',
    async (_index, parts) => {
      const app = await startApp()
      const { status, body } = await upload(app, parts)
      expect(status).toBe(200)
      expect(body).toMatchObject({ bytes: 5, filename: 'hello.txt', purpose: 'assistants' })
      expect(body.expires_at).toBe(body.created_at + 3600)
      expect(await contentOf(app, body.id)).toBe('hello')
    },
  )

  test.each([1, 2, 7, 64])('is accepted in chunks of %i bytes', async (size) => {
    const app = await startApp()
    const bytes = `\r\n-\r\n--\r\n--${BOUNDARY.slice(0, -1)}\r\n\r\n--${BOUNDARY.toUpperCase()}--\r\n\r\n`
    const { status, body } = await postFiles(app, toChunkStream(toForm([purpose, filePart(bytes)]), size))
    expect(status).toBe(200)
    expect(await contentOf(app, body.id)).toBe(bytes)
  })

  test('may have a preamble and an epilogue', async () => {
    const app = await startApp()
    const form = Buffer.concat([
      Buffer.from('to be ignored\r\n'),
      toForm([filePart(), purpose]),
      Buffer.from('\r\nto be ignored, too'),
    ])
    expect((await postFiles(app, form)).status).toBe(200)
  })

  test('may contain an empty file', async () => {
    const app = await startApp()
    const { status, body } = await upload(app, [filePart(''), purpose])
    expect([status, body.bytes]).toEqual([200, 0])
    const answer = await download(app, body.id)
    expect(answer.headers.get('content-length')).toBe('0')
    expect(await answer.text()).toBe('')
  })

  test('may contain a file that contains the boundary in the middle of a line', async () => {
    const app = await startApp()
    const bytes = `--${BOUNDARY}\r\n x\r\n--${BOUNDARY.slice(0, -1)}\r\n\n--${BOUNDARY}--\n-`
    const { body } = await upload(app, [filePart(`x${bytes}`), purpose])
    expect(await contentOf(app, body.id)).toBe(`x${bytes}`)
  })

  test('may have a quoted boundary and a charset', async () => {
    const app = await startApp()
    const type = `Multipart/Form-Data; charset=utf-8; boundary="${BOUNDARY}"`
    expect((await upload(app, [filePart(), purpose], { 'Content-Type': type })).status).toBe(200)
  })

  test('may contain a file without a name and fields with a file name', async () => {
    const app = await startApp()
    const { status, body } = await upload(app, [
      { disposition: 'name="file"', body: 'hello' },
      {
        disposition: 'name="purpose"; filename="purpose"',
        headers: ['Content-Type: application/octet-stream'],
        body: 'assistants',
      },
    ])
    expect(status).toBe(200)
    expect(body).toMatchObject({ filename: 'unnamed', purpose: 'assistants', bytes: 5 })
  })
})

describe('an invalid form', () => {
  const long = 'x'.repeat(5_000)
  const cases: readonly (readonly [what: string, parts: readonly Part[], param: string | null])[] = [
    ['has no file', [purpose], 'file'],
    ['has no purpose', [filePart()], 'purpose'],
    ['is empty', [], 'file'],
    ['has an empty purpose', [filePart(), field('purpose', '')], 'purpose'],
    ['has an object as its purpose', [filePart(), field('purpose[a]', 'b')], 'purpose'],
    ['has a purpose with a line break', [filePart(), field('purpose', 'a\nb')], 'purpose'],
    ['has a purpose of 201 characters', [filePart(), field('purpose', 'é'.repeat(201))], 'purpose'],
    ['has two files', [filePart(), filePart(), purpose], 'file'],
    ['has two purposes', [filePart(), purpose, purpose], 'purpose'],
    ['has an unknown field', [filePart(), purpose, field('colour', 'red')], null],
    ['has a field without a name', [filePart(), purpose, { disposition: 'nam="x"', body: '' }], null],
    ['has a field called __proto__', [filePart(), purpose, field('__proto__', '{"a":1}')], null],
    ['has a file that is also an object', [filePart(), purpose, field('file[a]', 'b')], 'file[a]'],
    ['has a field that is too long', [filePart(), field('purpose', long)], 'purpose'],
    ['has too many fields', [...Array(9).fill(purpose), filePart()], null],
    ['has too many parts', [...Array(9).fill({ disposition: 'x', body: '' }), filePart(), purpose], null],
  ]

  test.each(cases)('is rejected if it %s', async (_what, parts, param) => {
    const { app, dataDir } = await startWithDataDir()
    const { status, body } = await upload(app, parts)
    expect(status).toBe(400)
    expect(body.error).toMatchObject({ type: 'invalid_request_error', code: 'invalid_value', param })
    expect((await app.call('GET', '/v1/files')).body.data).toEqual([])
    expect(await listStored(dataDir)).toEqual(emptyStore)
  })

  const whole = toForm([filePart('x'.repeat(1_000)), purpose])
  test.each([
    ['inside the file', whole.subarray(0, 500)],
    ['inside a field', whole.subarray(0, whole.length - formEnd.length - 5)],
    ['before the last boundary', whole.subarray(0, whole.length - formEnd.length)],
    ['inside the last boundary', whole.subarray(0, whole.length - 6)],
    ['inside the headers of a part', partHead(filePart()).subarray(0, 60)],
    ['before the first boundary', Buffer.from('no form at all')],
    ['immediately', Buffer.alloc(0)],
  ])('is rejected if it ends %s', async (_where, body) => {
    const { app, dataDir } = await startWithDataDir()
    const answer = await postFiles(app, body)
    expect(answer.status).toBe(400)
    expect(answer.body.error).toMatchObject({ type: 'invalid_request_error', code: 'invalid_value' })
    expect((await app.call('GET', '/v1/files')).body.data).toEqual([])
    expect(await listStored(dataDir)).toEqual(emptyStore)
  })

  test.each([
    ['a different media type', { 'Content-Type': 'application/json' }, 415],
    [
      'a type that starts like multipart/form-data',
      { 'Content-Type': `multipart/form-datax; boundary=${BOUNDARY}` },
      415,
    ],
    ['a compressed body', { 'Content-Encoding': 'gzip' }, 415],
    ['no boundary', { 'Content-Type': 'multipart/form-data' }, 400],
    ['an overlong boundary', { 'Content-Type': `multipart/form-data; boundary=${'b'.repeat(300)}` }, 400],
  ])('is rejected if it has %s', async (_what, headers, status) => {
    const app = await startApp()
    const answer = await upload(app, undefined, headers)
    expect(answer.status).toBe(status)
    expect(answer.body.error.type).toBe('invalid_request_error')
  })
})

describe('the file size limit', () => {
  test.each([
    ['of known length', (form: Buffer) => form],
    ['of unknown length', (form: Buffer) => toChunkStream(form)],
  ])('accepts a file of exactly that size and rejects a larger one (form %s)', async (_how, toBody) => {
    const { app, dataDir } = await startWithDataDir({ PARLEY_MAX_FILE_BYTES: '1000' })
    const send = (size: number) =>
      postFiles(app, toBody(toForm([filePart(Buffer.alloc(size, 'x')), purpose])))
    expect((await send(1_001)).status).toBe(413)
    expect(await listStored(dataDir)).toEqual(emptyStore)
    const answer = await send(1_000)
    expect([answer.status, answer.body.bytes]).toEqual([200, 1_000])
  })

  test('also applies to the form data around the file', async () => {
    const { app, dataDir } = await startWithDataDir({ PARLEY_MAX_FILE_BYTES: '1000' })
    const epilogue = Buffer.alloc(300_000, 'x')
    const form = toChunkStream(Buffer.concat([toForm([filePart(), purpose]), epilogue]))
    const answer = await postFiles(app, form)
    expect([answer.status, answer.body.error.code]).toEqual([413, 'too_large'])
    expect(await listStored(dataDir)).toEqual(emptyStore)
  })
})

describe('the form parser', () => {
  const emoji = '👩‍👩‍👧‍👦'
  test.each([
    ['in Unicode', 'Übersicht – 報告書 📄.pdf', 'Übersicht – 報告書 📄.pdf'],
    ['in decomposed Unicode', 'u\u0308.txt', 'u\u0308.txt'],
    ['with joined emoji', `${emoji}.png`, `${emoji}.png`],
    ['with a right-to-left override', 'a\u202Etxt.exe', 'a\u202Etxt.exe'],
    ['with quotes as browsers and the official clients encode them', 'a%22b%22.txt', 'a"b".txt'],
    ['with quotes as older clients encode them', 'a\\"b\\".txt', 'a"b".txt'],
    ['with other escapes', '100%25 %41.txt', '100%25 %41.txt'],
    ['with spaces, semicolons and equals signs', ' a; name=x; b=c.txt', ' a; name=x; b=c.txt'],
    ['of 200 characters', '€'.repeat(200), '€'.repeat(200)],
    ['with line breaks as browsers encode them', 'a%0D%0AX-Evil: 1.txt', 'a%0D%0AX-Evil: 1.txt'],
    ['with a leading folder path', '../../etc/passwd', 'passwd'],
    ['with a leading Windows path', 'C:\\fakepath\\a.txt', 'a.txt'],
    ['that names a folder', '..', 'unnamed'],
    ['that is empty', '', 'unnamed'],
  ])('decodes a file name %s', async (_what, sent, kept) => {
    const app = await startApp()
    const { status, body } = await upload(app, [filePart('x', sent), purpose])
    expect([status, body.filename]).toEqual([200, kept])
    expect((await app.call('GET', `/v1/files/${body.id}`)).body.filename).toBe(kept)
  })

  test('decodes the file names that the official client sends', async () => {
    const app = await startApp()
    for (const name of ['文件 “1”.txt', 'a"b.txt', 'e\u0301\u{1F600}.txt']) {
      const created = await app.openai().files.create({ file: new File(['x'], name), purpose: 'assistants' })
      expect(created.filename).toBe(name)
    }
  })

  test.each([
    ['in the extended form', "filename*=UTF-8''%E5%A0%B1%E5%91%8A.txt", '報告.txt'],
    ['in both forms (as .NET sends it)', 'filename="=?utf-8?B?5aCx?="; filename*=utf-8\'\'%E5%A0%B1', '報'],
    ['without quotes', 'filename=plain.txt', 'plain.txt'],
  ])('accepts a file name %s', async (_what, parameters, kept) => {
    const app = await startApp()
    const part = { disposition: `name=file; ${parameters}`, body: 'x' }
    expect((await upload(app, [part, purpose])).body.filename).toBe(kept)
  })

  test.each([
    ['of 201 characters', `filename="${'é'.repeat(201)}"`],
    ['with a control character', 'filename="a\u0007b"'],
    ['with a tab', 'filename="a\tb"'],
    ['with encoded line breaks', "filename*=UTF-8''a%0D%0Ab"],
    ['that is not valid Unicode', "filename*=utf-16le''a%00%00%D8"],
    ['in an unknown charset', "filename*=x-unknown''a"],
  ])('rejects a file name %s', async (_what, parameters) => {
    const { app, dataDir } = await startWithDataDir()
    const { status, body } = await upload(app, [
      { disposition: `name="file"; ${parameters}`, body: 'x' },
      purpose,
    ])
    expect([status, body.error.param]).toEqual([400, 'file'])
    expect(await listStored(dataDir)).toEqual(emptyStore)
  })

  test.each([
    ['a file name that is not valid UTF-8', filePart('x', Buffer.from('a\xe9.txt', 'latin1')), 'file'],
    ['a file name with a lone surrogate', filePart('x', Buffer.from('\xed\xa0\x80', 'latin1')), 'file'],
    [
      'a field value that is not valid UTF-8',
      { disposition: 'name="purpose"', body: Buffer.from('a\xff', 'latin1') },
      'purpose',
    ],
    [
      'a field name that is not valid UTF-8',
      { disposition: Buffer.from('name="a\xff"', 'latin1'), body: 'x' },
      null,
    ],
  ] as const)('rejects a form with %s', async (_what, part, param) => {
    const { app, dataDir } = await startWithDataDir()
    const { status, body } = await upload(app, [part, filePart(), purpose])
    expect([status, body.error.code, body.error.param]).toEqual([400, 'invalid_value', param])
    expect(body.error.message).toContain('is not valid text')
    expect(await listStored(dataDir)).toEqual(emptyStore)
  })

  test.each([
    ['a line feed', 'a\nb.txt'],
    ['a carriage return', 'a\rb.txt'],
    ['a CRLF and another header', 'a\r\nX-Evil: 1\r\n\r\nb.txt'],
  ])('never stores a line break from a file name with %s', async (_what, name) => {
    const { app, dataDir } = await startWithDataDir()
    const { status, body } = await upload(app, [filePart('x', name), purpose])
    if (status === 200) expect(body.filename).not.toMatch(/[\r\n]/)
    else expect([status, body.error.param]).toEqual([400, 'file'])
    const { incoming } = await listStored(dataDir)
    expect(incoming).toEqual([])
  })
})
