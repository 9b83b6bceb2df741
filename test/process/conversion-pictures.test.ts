/** Tests that uploaded images are rotated, scaled down and stripped of camera metadata, or rejected. */

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'
import { describe, expect, test, vi } from 'vitest'
import { createConverter } from '../../src/conversion/conversion.ts'
import { createTestConverter } from '../support/conversion.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

async function convertPicture(content: string | Uint8Array) {
  const { convert } = await createTestConverter()
  const { converted, refused, left } = await convert('thumbnail', content)
  const bytes = converted && (await readFile(converted.file.path))
  return { converted, refused, left, bytes: bytes ?? Buffer.alloc(0) }
}

const plain = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: { r: 200, g: 30, b: 60 } } })

/** Builds a one-bit, single-color PNG with maximum compression. */
function makeBlankPng(width: number, height: number): Buffer {
  const chunk = (name: string, data: Buffer) => {
    const named = Buffer.concat([Buffer.from(name), data])
    const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    checksum.writeUInt32BE(crc32(named))
    return Buffer.concat([length, named, checksum])
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.writeUInt8(1, 8)
  const rows = deflateSync(Buffer.alloc((Math.ceil(width / 8) + 1) * height), { level: 9 })
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  const parts = [chunk('IHDR', header), chunk('IDAT', rows), chunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([signature, ...parts])
}

/** Repeats the last scan of a progressive JPEG `times` times. */
function repeatScan(jpeg: Buffer, times: number): Buffer {
  const start = jpeg.lastIndexOf(Buffer.from([0xff, 0xda]))
  const scan = jpeg.subarray(start, jpeg.length - 2)
  return Buffer.concat([jpeg.subarray(0, start), ...Array<Buffer>(times).fill(scan), jpeg.subarray(-2)])
}

/** Converts a picture; returns the CPU seconds of the processes that it started. */
async function cpuSecondsOf(picture: Buffer): Promise<number> {
  const before = await readEndedSeconds()
  await convertPicture(picture)
  return (await readEndedSeconds()) - before
}

/** Reads the CPU seconds of all ended child processes (proc(5): cutime and cstime, in ticks of 10 ms). */
async function readEndedSeconds(): Promise<number> {
  const fields = (await readFile('/proc/self/stat', 'utf8')).replace(/^.*\) /s, '').split(' ')
  return (Number(fields[13]) + Number(fields[14])) / 100
}

describe('an uploaded image', () => {
  test.each([
    ['JPEG', 'jpeg', 'picture.jpg', 'image/jpeg'],
    ['PNG', 'png', 'picture.webp', 'image/webp'],
    ['WebP', 'webp', 'picture.webp', 'image/webp'],
  ] as const)('in %s format is re-encoded', async (_what, format, name, mediaType) => {
    const content = await plain(60, 40).toFormat(format).toBuffer()
    const { converted, left, bytes } = await convertPicture(content)
    expect(converted).toMatchObject({ result: 'converted', file: { mediaType } })
    expect(left).toEqual([name])
    expect(bytes).not.toEqual(content)
    expect(await sharp(bytes).metadata()).toMatchObject({ format: mediaType.slice(6), width: 60, height: 40 })
  })

  test('keeps its transparency', async () => {
    const { bytes } = await convertPicture(await plain(8, 8).ensureAlpha(0.5).png().toBuffer())
    expect(await sharp(bytes).metadata()).toMatchObject({ format: 'webp', hasAlpha: true })
  })

  test('is rotated upright and loses its location and camera metadata', async () => {
    const exif = { IFD0: { Model: 'Kamera 3000' }, IFD3: { GPSLatitude: '48/1 8/1 0/1' } }
    const camera = plain(60, 40).withExif(exif).withMetadata({ orientation: 6 }).withXmp('<x>Zuhause</x>')
    const content = await camera.withIccProfile('p3').jpeg().toBuffer()
    for (const word of ['Kamera', 'Zuhause']) expect(content.includes(word)).toBe(true)
    const { bytes } = await convertPicture(content)
    const { width, height, exif: left, xmp, icc, orientation } = await sharp(bytes).metadata()
    expect({ width, height, left, xmp, icc, orientation }).toEqual({ width: 40, height: 60 })
    for (const word of ['Kamera', 'Zuhause']) expect(bytes.includes(word)).toBe(false)
  })

  test('is scaled down to at most 4096 pixels in width', async () => {
    const { bytes } = await convertPicture(await plain(5000, 1000).jpeg().toBuffer())
    expect(await sharp(bytes).metadata()).toMatchObject({ width: 4096, height: 819 })
  })

  test('with several frames is converted to its first frame', async () => {
    const frames = await Promise.all([plain(8, 8).png().toBuffer(), plain(8, 8).negate().png().toBuffer()])
    const { bytes } = await convertPicture(
      await sharp(frames, { join: { animated: true } })
        .webp()
        .toBuffer(),
    )
    expect((await sharp(bytes).metadata()).pages ?? 1).toBe(1)
  })
})

describe('an image is rejected', () => {
  const NOT_A_PICTURE = 'unconvertible: The file is not a JPEG, PNG or WebP picture.'

  test('when it is not a JPEG, PNG or WebP file', async () => {
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>'
    const others = [svg, await plain(8, 8).gif().toBuffer(), await plain(8, 8).tiff().toBuffer(), 'text']
    for (const content of others)
      expect(await convertPicture(content)).toMatchObject({ refused: NOT_A_PICTURE, left: [] })
  })

  test('when it is an SVG that starts with a JPEG signature', async () => {
    const jpeg = Buffer.from([0xff, 0xd8, 0xff, 0xe0])
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>')
    const { refused, left } = await convertPicture(Buffer.concat([jpeg, svg]))
    expect(refused).toMatch(/^unconvertible: The picture cannot be read/)
    expect(left).toEqual([])
  })

  test('when it is truncated', async () => {
    const noise = sharp({
      create: {
        width: 200,
        height: 200,
        channels: 3,
        background: '#000',
        noise: { type: 'gaussian', sigma: 30 },
      },
    })
    const whole = await noise.jpeg().toBuffer()
    const { refused, left } = await convertPicture(whole.subarray(0, whole.length / 2))
    expect(refused).toBe('unconvertible: The picture cannot be converted: it is damaged.')
    expect(left).toEqual([])
  })

  test('when it exceeds 50 megapixels, and as a decompression bomb if its file is also very small', async () => {
    const bomb = makeBlankPng(16_384, 16_384)
    expect(bomb.length).toBeLessThan(40_000)
    expect(await convertPicture(bomb)).toMatchObject({
      refused: 'dangerous: The picture is a decompression bomb: a small file with a huge number of pixels.',
      left: [],
    })
    const honest = Buffer.concat([makeBlankPng(8_000, 8_000), Buffer.alloc(500_000)])
    const { refused } = await convertPicture(honest)
    expect(refused).toBe('unconvertible: The picture has 64 megapixels; the limit is 50.')
  })

  test('when it is a progressive JPEG with more than 100 scans', async () => {
    const progressive = await plain(64, 64).jpeg({ progressive: true }).toBuffer()
    expect(await convertPicture(repeatScan(progressive, 1_000))).toMatchObject({
      refused: 'dangerous: The picture is a decompression bomb: it has more than 100 scans.',
      left: [],
    })
    expect((await convertPicture(progressive)).refused).toBeUndefined()
  })
})

describe('an image', () => {
  test('with 20,000 scans costs at most 2 seconds more CPU time than a small image', async () => {
    const ofSmall = await cpuSecondsOf(await plain(8, 8).jpeg().toBuffer())
    const progressive = await plain(2_000, 2_000).jpeg({ progressive: true }).toBuffer()
    const bomb = repeatScan(progressive, 20_000)
    expect(bomb.length).toBeLessThan(2 * 1024 ** 2)
    expect((await cpuSecondsOf(bomb)) - ofSmall).toBeLessThan(2)
  })
})

describe('an image is rejected', () => {
  test('when its conversion takes longer than 30 seconds, even if the configured limit is higher', async () => {
    const waits: number[] = []
    const wait = async (ms: number) => void waits.push(ms)
    const { folder, workFolder } = await createTestConverter()
    const conversion = { wallMs: 600_000, memoryBytes: 2 * 1024 ** 3, searchPath: '', tries: 1 }
    const { convert } = await createConverter({ config: { conversion }, clock: { wait } })
    const source = join(folder, 'picture.jpg')
    await writeFile(source, await plain(8, 8).jpeg().toBuffer())
    const request = { source, workFolder, signal: new AbortController().signal, onProgress: () => {} }
    await expect(convert({ kind: 'thumbnail', ...request })).rejects.toThrow('took longer than 30 seconds')
    await expect(convert({ kind: 'project', ...request })).rejects.toThrow('took longer than 600 seconds')
    expect(waits).toEqual([30_000, 600_000])
  })
})

describe('an image of exactly 50 megapixels', () => {
  test('is accepted and scaled down', async () => {
    const { refused, bytes } = await convertPicture(makeBlankPng(50_000, 1_000))
    expect(refused).toBeUndefined()
    expect(await sharp(bytes).metadata()).toMatchObject({ width: 4096, height: 82 })
  })
})
