/** Makes a picture fit for the web: encoded anew, upright, without what its camera wrote into it. Runs in the worker alone. */

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import sharp, { type Metadata } from 'sharp'
import { dangerous, isDiskFull, type MadeFile, type Outcome, unconvertible } from './job.ts'

/** Decision: 9. */
const MAX_SIDE_PIXELS = 4_096
/** Security: 2.9. */
const MAX_PIXELS = 50e6
const SECONDS = 10
/** Photographs have less than 20 pixels in a byte, and what is all of one colour a few hundred. */
const BOMB_PIXELS_PER_BYTE = 200

sharp.cache(false)
sharp.concurrency(1)
// Whatever else the library can read, it does not here.
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({ operation: ['VipsForeignLoadJpeg', 'VipsForeignLoadPng', 'VipsForeignLoadWebp'] })

/**
 * Writes the picture into the folder: a JPEG as a JPEG, anything else as a WebP.
 * @throws ConversionRejection `dangerous` for a small file of very many pixels.
 */
export async function convertPicture(source: string, folder: string): Promise<Outcome> {
  const { format, width, height } = await readHeader(source)
  await assertModest(source, width * height)
  const made = madeFileOf(format)
  const pipeline = sharp(source, { limitInputPixels: MAX_PIXELS, failOn: 'error' })
    .autoOrient()
    .resize({ width: MAX_SIDE_PIXELS, height: MAX_SIDE_PIXELS, fit: 'inside', withoutEnlargement: true })
    .timeout({ seconds: SECONDS })
  // More effort would save a twentieth of the bytes, for twice the time.
  const encoded =
    format === 'jpeg' ? pipeline.jpeg({ quality: 85 }) : pipeline.webp({ quality: 85, effort: 2 })
  await encoded.toFile(join(folder, made.name)).catch((error: Error) => {
    if (isDiskFull(error.message)) throw error
    const problem = error.message.includes('timeout')
      ? `it takes more than ${SECONDS} seconds`
      : 'it is damaged'
    throw unconvertible(`The picture cannot be converted: ${problem}.`, error)
  })
  return { made }
}

/** What the file says of itself; none of its pixels is read. */
async function readHeader(source: string): Promise<Metadata> {
  try {
    return await sharp(source, { limitInputPixels: false }).metadata()
  } catch (error) {
    throw unconvertible('The picture cannot be read: it is damaged, or no JPEG, PNG or WebP.', error)
  }
}

async function assertModest(source: string, pixels: number): Promise<void> {
  if (pixels <= MAX_PIXELS) return
  const { size } = await stat(source)
  if (pixels / size > BOMB_PIXELS_PER_BYTE)
    throw dangerous('The picture is a bomb: few bytes, and very many pixels.')
  throw unconvertible(`The picture has ${Math.round(pixels / 1e6)} megapixels, and 50 is the most.`)
}

function madeFileOf(format: Metadata['format']): MadeFile {
  if (format === 'jpeg') return { name: 'picture.jpg', mediaType: 'image/jpeg' }
  return { name: 'picture.webp', mediaType: 'image/webp' }
}
