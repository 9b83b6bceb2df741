/**
 * Re-encodes a picture with the correct orientation and without metadata. Runs only in the worker process.
 */
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import sharp, { type Metadata } from 'sharp'
import { dangerous, isDiskFull, type Outcome, unconvertible } from './job.ts'

const MAX_SIDE_PIXELS = 4_096
const MAX_PIXELS = 50e6
const SECONDS = 10
/** Limits the decoding time. Encoders write 1 to 20 scans. */
const MAX_SCANS = 100
/**
 * A picture over the pixel limit is treated as a decompression bomb above this ratio. Photos stay below 20.
 */
const BOMB_PIXELS_PER_BYTE = 200

sharp.cache(false)
sharp.concurrency(1)
// Allows only JPEG, PNG and WebP, because the library can load many other formats.
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({ operation: ['VipsForeignLoadJpeg', 'VipsForeignLoadPng', 'VipsForeignLoadWebp'] })

/**
 * Writes a JPEG or WebP file.
 * @throws ConversionRejection `dangerous` for a small file with a huge number of pixels.
 */
export async function convertPicture(source: string, folder: string): Promise<Outcome> {
  const { format, width, height } = await readHeader(source)
  await assertModest(source, width * height)
  const isJpeg = format === 'jpeg'
  if (isJpeg && (await countScans(source)) > MAX_SCANS)
    throw dangerous(`The picture is a decompression bomb: it has more than ${MAX_SCANS} scans.`)
  const made = isJpeg
    ? { name: 'picture.jpg', mediaType: 'image/jpeg' }
    : { name: 'picture.webp', mediaType: 'image/webp' }
  const pipeline = sharp(source, { limitInputPixels: MAX_PIXELS, failOn: 'error' })
    .autoOrient()
    .resize({ width: MAX_SIDE_PIXELS, height: MAX_SIDE_PIXELS, fit: 'inside', withoutEnlargement: true })
    .timeout({ seconds: SECONDS })
  // A higher effort saves 5% of the bytes but doubles the time.
  const encoded = isJpeg ? pipeline.jpeg({ quality: 85 }) : pipeline.webp({ quality: 85, effort: 2 })
  await encoded.toFile(join(folder, made.name)).catch((error: Error) => {
    if (isDiskFull(error.message)) throw error
    const problem = error.message.includes('timeout')
      ? `it takes more than ${SECONDS} seconds`
      : 'it is damaged'
    throw unconvertible(`The picture cannot be converted: ${problem}.`, error)
  })
  return { made }
}

async function readHeader(source: string): Promise<Metadata> {
  try {
    return await sharp(source, { limitInputPixels: false }).metadata()
  } catch (error) {
    throw unconvertible('The picture cannot be read: it is damaged, or not a JPEG, PNG or WebP file.', error)
  }
}

const SCAN = 0xda
const END = 0xd9
/** Returns whether a JPEG marker has no length field. Includes stuffed zeros. */
const isBare = (marker: number) => marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8)

/**
 * Counts a JPEG's scans (ITU-T T.81, B.1), because the library's timeout does not interrupt reading the
 * scans. Skips segments, which may contain other JPEGs.
 */
async function countScans(source: string): Promise<number> {
  let [scans, skippedBytes, lengthHigh] = [0, 0, 0]
  let next: 'data' | 'marker' | 'lengthHigh' | 'lengthLow' = 'data'
  for await (const chunk of createReadStream(source) as AsyncIterable<Buffer>) {
    for (let at = 0; at < chunk.length; at++) {
      if (skippedBytes > 0 || next === 'data') {
        const start = at + skippedBytes
        at = start >= chunk.length ? -1 : chunk.indexOf(0xff, start)
        skippedBytes = Math.max(0, start - chunk.length)
        if (at < 0) break
        next = 'marker'
        continue
      }
      const byte = chunk.readUInt8(at)
      if (next === 'marker') {
        if (byte === END || scans > MAX_SCANS) return scans
        if (byte === SCAN) scans += 1
        if (byte !== 0xff) next = isBare(byte) ? 'data' : 'lengthHigh'
      } else if (next === 'lengthHigh') {
        lengthHigh = byte
        next = 'lengthLow'
      } else {
        skippedBytes = Math.max(0, lengthHigh * 256 + byte - 2)
        next = 'data'
      }
    }
  }
  return scans
}

async function assertModest(source: string, pixels: number): Promise<void> {
  if (pixels <= MAX_PIXELS) return
  const { size } = await stat(source)
  if (pixels / size > BOMB_PIXELS_PER_BYTE)
    throw dangerous('The picture is a decompression bomb: a small file with a huge number of pixels.')
  throw unconvertible(`The picture has ${Math.round(pixels / 1e6)} megapixels; the limit is 50.`)
}
