/**
 * Tests that only JSON and safe ZIP archives are accepted as projects, and that unsafe archives are detected.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { describe, expect, test, vi } from 'vitest'
import { checkProject } from '../../src/conversion/archive.ts'
import { ConversionRejection } from '../../src/conversion/job.ts'
import { createTestConverter } from '../support/conversion.ts'
import { makeFolder } from '../support/process.ts'
import { type Member, makeZip } from '../support/zip.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

/** Checks a project; returns its media type, or the reason why it is rejected. */
async function check(content: string | Uint8Array): Promise<string> {
  const path = join(await makeFolder(), 'project')
  await writeFile(path, content)
  try {
    const outcome = await checkProject(path)
    return 'unchanged' in outcome ? outcome.unchanged.mediaType : JSON.stringify(outcome)
  } catch (error) {
    if (!(error instanceof ConversionRejection)) throw error
    return `${error.verdict}: ${error.message}`
  }
}

const zip = (...members: Member[]) => check(makeZip(members))

test('a project is checked in a separate process and served unchanged when it is safe', async () => {
  const { convert } = await createTestConverter()
  for (const [content, mediaType] of [
    ['{"tracks":[]}', 'application/json'],
    [makeZip([{ name: 'a', data: 'a' }]), 'application/zip'],
  ] as const) {
    const { converted, left } = await convert('project', content)
    expect(converted).toEqual({ result: 'original', file: { path: expect.any(String), mediaType } })
    expect(left).toEqual([])
  }
  const { refused, left } = await convert('project', makeZip([{ name: '../evil' }]))
  expect(refused).toBe('dangerous: The archive contains a file name that points outside its folder.')
  expect(left).toEqual([])
})

describe('a JSON project', () => {
  test('is served unchanged', async () => {
    expect(await check('{"tracks":[{"clips":[]}]}')).toBe('application/json')
    expect(await check(' [1, "ü"]\n')).toBe('application/json')
  })

  test.each([
    ['a single value', '42', /must be an object or an array/],
    ['not closed', '{"a":', /neither a ZIP archive nor JSON/],
    ['not UTF-8', Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]), /UTF-8 JSON/],
    ['nested too deeply', '['.repeat(100_000) + ']'.repeat(100_000), /deeper than 64/],
  ])('that is %s is rejected', async (_what, content, sentence) => {
    const refused = await check(content)
    expect(refused).toMatch(/^unconvertible: /)
    expect(refused).toMatch(sentence)
  })
})

describe('a project archive', () => {
  test('with files and folders is served unchanged', async () => {
    const members = [
      { name: 'clips/', mode: 0o040755, isStored: true },
      { name: 'clips/one.json', data: '{}' },
      { name: 'clips/Äther …½.txt', data: 'x', mode: 0 },
      { name: '..hidden/..dots..', data: '' },
    ]
    expect(await zip(...members)).toBe('application/zip')
    expect(await check(makeZip([]))).toBe('application/zip')
  })

  test('may contain another archive, which is also checked', async () => {
    expect(await zip({ name: 'a.zip', data: makeZip([{ name: 'b', data: 'b' }]) })).toBe('application/zip')
    const inner = makeZip([{ name: '../b' }])
    expect(await zip({ name: 'a.docx', data: inner, isStored: true })).toMatch(/^dangerous: /)
  })

  const outside: [what: string, member: Member][] = [
    ['above the folder', { name: '../evil' }],
    ['above the folder, halfway through', { name: 'a/../../evil' }],
    ['above the folder, with backslashes', { name: 'a\\..\\..\\evil' }],
    ['to the root', { name: '/etc/cron.d/evil' }],
    ['to the root, with a backslash', { name: '\\evil' }],
    ['to another drive', { name: 'C:evil' }],
    ['above the folder, in the local header only', { name: 'good', innerName: '../evil' }],
    ['above the folder, in the central directory only', { name: '../evil', innerName: 'good' }],
  ]
  test.each(outside)("is rejected as dangerous when a member's path points %s", async (_what, member) => {
    expect(await zip(member)).toBe(
      'dangerous: The archive contains a file name that points outside its folder.',
    )
  })

  test('is rejected as dangerous when a Unicode path field points above the folder', async () => {
    const raw = Buffer.from('good')
    const path = Buffer.from('../evil')
    const extra = Buffer.alloc(9 + path.length)
    extra.writeUInt16LE(0x7075, 0)
    extra.writeUInt16LE(5 + path.length, 2)
    extra.writeUInt8(1, 4)
    extra.writeUInt32LE(crc32(raw), 5)
    path.copy(extra, 9)
    expect(await zip({ name: raw, extra })).toMatch(/^dangerous: .* points outside/)
  })

  test.each([
    ['a link', 0o120777],
    ['a device', 0o060644],
    ['a pipe', 0o010644],
  ])('is rejected as dangerous when it contains %s', async (_what, mode) => {
    expect(await zip({ name: 'thing', data: '/etc/passwd', mode })).toMatch(/^dangerous: .* a link/)
  })

  test('is accepted if a folder has the mode -1, which some Java programs write', async () => {
    const members = [
      { name: 'org/', data: '', mode: 0o177777 },
      { name: 'org/a.txt', data: 'a' },
    ]
    expect(await zip(...members)).toBe('application/zip')
  })

  const broken: [what: string, member: Member, sentence: RegExp][] = [
    ['a backslash in a name', { name: 'a\\b' }, /invalid file name/],
    ['a line break in a name', { name: 'a\nb' }, /invalid file name/],
    ['a name that is not UTF-8', { name: Buffer.from([0x61, 0xff]) }, /invalid file name/],
    ['an empty path segment', { name: 'a//b' }, /invalid file name/],
    ['a name that is too long', { name: 'a'.repeat(256) }, /invalid file name/],
    ['two different names for one file', { name: 'a', innerName: 'b' }, /two different names/],
    ['a false checksum', { name: 'a', data: 'a', checksum: 1 }, /damaged/],
    ['a false size', { name: 'a', data: 'aaaa', sizeBytes: 3 }, /damaged/],
    ['an unknown compression method', { name: 'a', method: 14 }, /unsupported compression method/],
    ['a password', { name: 'a', data: 'a', flags: 0x801 }, /encrypted/],
  ]
  test.each(broken)('is rejected if it contains %s', async (_what, member, sentence) => {
    const refused = await zip(member)
    expect(refused).toMatch(/^unconvertible: /)
    expect(refused).toMatch(sentence)
  })

  test('is rejected when two file names differ only in case or Unicode normalization', async () => {
    for (const name of ['Readme', 'readme', 'rEADME'])
      expect(await zip({ name: 'README' }, { name })).toBe(
        'unconvertible: The archive contains two files with the same name.',
      )
    expect(await zip({ name: 'é' }, { name: 'e\u0301' })).toMatch(/same name/)
  })

  test('is rejected when it is truncated', async () => {
    const whole = makeZip([{ name: 'a', data: 'a'.repeat(1000) }])
    expect(await check(whole.subarray(0, whole.length - 10))).toBe('unconvertible: The archive is damaged.')
  })
})

describe('an archive that streaming ZIP readers would read differently', () => {
  const hidden = 'dangerous: The archive contains bytes that its directory does not list.'
  const evil = makeZip([{ name: '../../evil', data: 'evil' }])

  test('is rejected as dangerous when its central directory omits a member', async () => {
    expect(await zip({ name: 'a', data: 'a', after: evil }, { name: 'b' })).toBe(hidden)
    expect(await zip({ name: 'a', data: 'a', after: evil })).toBe(hidden)
  })

  test('is rejected as dangerous when another archive precedes it', async () => {
    const good = makeZip([{ name: 'good', data: 'good' }])
    const end = good.length - 22
    // Corrects the offsets, which are relative to the start of the file.
    good.writeUInt32LE(good.readUInt32LE(end + 16) + evil.length, end + 16)
    const entry = good.indexOf(Buffer.from([0x50, 0x4b, 1, 2]))
    good.writeUInt32LE(evil.length, entry + 42)
    expect(await check(Buffer.concat([evil, good]))).toBe(hidden)
  })

  test("is rejected when extra data follows a member's compressed data", async () => {
    expect(await zip({ name: 'a', data: 'a', tail: evil })).toBe('unconvertible: The archive is damaged.')
  })

  test('is rejected when there are unused bytes between its members', async () => {
    expect(await zip({ name: 'a', data: 'a', after: Buffer.alloc(5) })).toMatch(
      /^unconvertible: .* does not match its directory/,
    )
  })

  test("is rejected when a member's two headers differ", async () => {
    const whole = makeZip([{ name: 'a', data: 'a' }])
    // Overwrites the checksum in the local header.
    whole.writeUInt32LE(1, 14)
    expect(await check(whole)).toMatch(/^unconvertible: .* two different headers/)
  })
})

describe('an archive with data descriptors', () => {
  test('is accepted if it has no hidden members', async () => {
    const streamed = { data: 'a', flags: 0x808, isUnstated: true }
    for (const length of [12, 16, 20, 24])
      expect(await zip({ name: 'a', ...streamed, after: Buffer.alloc(length) }, { name: 'b' })).toBe(
        'application/zip',
      )
  })
})

const zeros = Buffer.alloc(100 * 1024 * 1024)

describe('an archive bomb', () => {
  test('is rejected as dangerous when it expands a thousandfold', async () => {
    expect(await zip({ name: 'zeros', data: zeros })).toMatch(/^dangerous: .* bomb/)
  })

  test('is rejected as damaged when it declares a false size', async () => {
    expect(await zip({ name: 'zeros', data: zeros, sizeBytes: 10 })).toBe(
      'unconvertible: The archive is damaged.',
    )
  })

  test('is rejected as dangerous when it is hidden in nested archives', async () => {
    const core = makeZip([{ name: 'zeros', data: zeros.subarray(0, 20 * 1024 * 1024) }])
    const books = Array.from({ length: 6 }, (_, index) => ({ name: `${index}.zip`, data: core }))
    expect(await zip(...books)).toMatch(/^dangerous: .* bomb/)
  })

  test('is rejected as dangerous when its archives are nested too deeply', async () => {
    let inner = makeZip([{ name: 'page', data: 'page' }])
    for (const name of ['chapter', 'book']) inner = makeZip([{ name, data: inner }])
    expect(await check(inner)).toBe('application/zip')
    expect(await zip({ name: 'library', data: inner })).toMatch(/^dangerous: .* too deep/)
  })

  test('is rejected as dangerous when it contains more than 10,000 files', async () => {
    const members = Array.from({ length: 10_001 }, (_, index) => ({ name: String(index), isStored: true }))
    expect(await check(makeZip(members.slice(1)))).toBe('application/zip')
    expect(await check(makeZip(members))).toBe('dangerous: The archive contains more than 10000 files.')
  })
})

describe('an archive with 32 MiB of zeros', () => {
  test('is accepted', async () => {
    expect(await zip({ name: 'blank', data: zeros.subarray(0, 32 * 1024 * 1024) })).toBe('application/zip')
  })
})
