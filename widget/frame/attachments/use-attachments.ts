/** Holds the attachments of the message that the visitor writes. */
import { useState } from 'react'
import { useFrame } from '../frame-context.ts'
import { fill } from '../strings/strings.ts'
import type { Attachment } from './attachments.ts'
import { readFile } from './read-file.ts'

export interface Attachments {
  readonly list: readonly Attachment[]
  /** Why the last file was not attached, for the visitor. */
  readonly problem: string | undefined
  readonly isReading: boolean
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
  const isFull = rules !== undefined && list.length >= rules.max_count

  async function addAll(files: readonly File[]): Promise<void> {
    if (rules === undefined || files.length === 0) return
    setProblem(undefined)
    setReading((count) => count + 1)
    const tooMany = fill(strings.attachmentCount, { count: rules.max_count })
    let free = rules.max_count - list.length
    for (const file of files) {
      if (free <= 0) {
        setProblem(tooMany)
        break
      }
      const read = await readFile(file, rules).catch(() => 'type' as const)
      if (typeof read === 'object') {
        free -= 1
        setList((before) => [...before, read].slice(0, rules.max_count))
      } else if (read === 'type') setProblem(fill(strings.attachmentType, { name: file.name }))
      else {
        const limit = new Intl.NumberFormat(tag, {
          style: 'unit',
          unit: 'kilobyte',
          maximumFractionDigits: 0,
        })
        const values = { name: file.name, limit: limit.format(rules.max_bytes / 1024) }
        setProblem(fill(strings.attachmentSize, values))
      }
    }
    setReading((count) => count - 1)
  }

  return {
    list,
    problem,
    isReading: reading > 0,
    add: (files) => {
      if (isFull && files.length > 0) setProblem(fill(strings.attachmentCount, { count: rules.max_count }))
      else void addAll(files)
    },
    remove(id) {
      setProblem(undefined)
      setList((before) => before.filter((one) => one.id !== id))
    },
    clear() {
      setProblem(undefined)
      setList([])
    },
  }
}
