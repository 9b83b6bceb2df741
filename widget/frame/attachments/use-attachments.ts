/** Holds the attachments of the message that the visitor writes. */
import { useState } from 'react'
import { useFrame } from '../frame-context.ts'
import { fill } from '../strings/strings.ts'
import type { Attachment, AttachmentRules } from './attachments.ts'
import { type FileProblem, readFile } from './read-file.ts'
import { type Uploads, useUploads } from './use-uploads.ts'

export interface Attachments {
  readonly list: readonly Attachment[]
  /** Why the last file was not attached, for the visitor. */
  readonly problem: string | undefined
  /** Whether a file is being read or uploaded. */
  readonly isReading: boolean
  readonly uploads: Uploads
  readonly add: (files: readonly File[]) => void
  readonly remove: (id: string) => void
  readonly clear: () => void
}

export function useAttachments(): Attachments {
  const { agent, language } = useFrame()
  const [list, setList] = useState<readonly Attachment[]>([])
  const [problem, setProblem] = useState<string>()
  const [reading, setReading] = useState(0)
  const { strings, tag } = language
  const rules = agent?.attachments ?? undefined
  const uploads = useUploads((done) => setList((before) => [...before, done]))
  const count = list.length + uploads.transfers.length
  const isFull = rules !== undefined && count >= rules.max_count

  async function addAll(files: readonly File[]): Promise<void> {
    if (rules === undefined || files.length === 0) return
    setProblem(undefined)
    setReading((count) => count + 1)
    const tooMany = fill(strings.attachmentCount, { count: rules.max_count })
    let free = rules.max_count - count
    for (const file of files) {
      if (free <= 0) {
        setProblem(tooMany)
        break
      }
      const read = await readFile(file, rules).catch(() => 'type' as const)
      if (typeof read === 'object') {
        free -= 1
        setList((before) => [...before, read].slice(0, rules.max_count))
      } else if (canUpload(file, rules)) {
        free -= 1
        await uploads.add(file).catch(() => setProblem(strings.uploadFailed))
      } else setProblem(explain(file, read, rules))
    }
    setReading((count) => count - 1)
  }

  function explain(file: File, problem: FileProblem, given: AttachmentRules): string {
    const { name } = file
    const uploadBytes = isUploadType(file, given) ? given.uploads?.max_bytes : undefined
    if (problem === 'type' && uploadBytes === undefined) return fill(strings.attachmentType, { name })
    const kilobytes = (uploadBytes ?? given.max_bytes) / 1024
    const isLarge = kilobytes >= 1024
    const limit = new Intl.NumberFormat(tag, {
      style: 'unit',
      unit: isLarge ? 'megabyte' : 'kilobyte',
      maximumFractionDigits: isLarge ? 1 : 0,
    })
    return fill(strings.attachmentSize, { name, limit: limit.format(isLarge ? kilobytes / 1024 : kilobytes) })
  }

  return {
    list,
    problem,
    isReading: reading > 0 || uploads.transfers.length > 0,
    uploads,
    add: (files) => {
      if (isFull && files.length > 0) setProblem(fill(strings.attachmentCount, { count: rules.max_count }))
      else void addAll(files)
    },
    remove(id) {
      setProblem(undefined)
      const { upload } = list.find((one) => one.id === id) ?? {}
      if (upload !== undefined) uploads.discard(upload)
      setList((before) => before.filter((one) => one.id !== id))
    },
    clear() {
      setProblem(undefined)
      setList([])
    },
  }
}

function isUploadType({ name }: File, { uploads }: AttachmentRules): boolean {
  return uploads?.extensions.includes(/\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? '') === true
}

function canUpload(file: File, rules: AttachmentRules): boolean {
  return isUploadType(file, rules) && file.size > 0 && file.size <= (rules.uploads?.max_bytes ?? 0)
}
