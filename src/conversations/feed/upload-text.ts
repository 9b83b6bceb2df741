/** Renders a visitor's upload as the text that the model receives, and reads this text. */
import { isJsonObject, parseJson } from '../../lib/formats/json.ts'

export interface UploadText {
  readonly artifactId: string
  readonly name: string
  readonly mediaType: string
  readonly sizeBytes: number
}

const layout = /^\[Uploaded file: ([^\]\n]+)\]\n(.+)$/

/** The model receives the id, so that it can pass the file to a tool. */
export function renderUpload({ artifactId, name, mediaType, sizeBytes }: UploadText): string {
  const about = { artifact_id: artifactId, media_type: mediaType, bytes: sizeBytes }
  return `[Uploaded file: ${name}]\n${JSON.stringify(about)}`
}

/** Returns undefined if the text is not an upload. */
export function parseUpload(text: string): UploadText | undefined {
  const [, name, json = ''] = layout.exec(text) ?? []
  const about = name === undefined ? undefined : parseJson(json)
  if (name === undefined || !isJsonObject(about)) return undefined
  const { artifact_id: artifactId, media_type: mediaType, bytes: sizeBytes } = about
  if (typeof artifactId !== 'string' || typeof mediaType !== 'string' || typeof sizeBytes !== 'number')
    return undefined
  return { artifactId, name, mediaType, sizeBytes }
}
