/** Stores an agent's test questions and its mocked page tools in this browser, by parent key and agent. */
import { useLocalStorage } from '@mantine/hooks'
import { useMe } from '../../shell/use-me.ts'

/** A page tool as the tester writes it. */
export interface WrittenTool {
  readonly name: string
  readonly description: string
  /** JSON Schema as text. */
  readonly parameters: string
  /** Whether the visitor must allow each call. */
  readonly isAsked: boolean
}

export interface StoredTests {
  readonly questions: readonly string[]
  readonly tools: readonly WrittenTool[]
}

const empty: StoredTests = { questions: [], tools: [] }
const placeOf = (parentKey: string, subject: string) => `parley-tests:${parentKey}:${subject}`

export function useStoredTests(
  subject: string,
): readonly [StoredTests, (changes: Partial<StoredTests>) => void] {
  const { parent_key: parentKey } = useMe()
  const [stored, setStored] = useLocalStorage<StoredTests>({
    key: placeOf(parentKey, subject),
    defaultValue: empty,
    getInitialValueInEffect: false,
  })
  return [stored, (changes) => setStored((now) => ({ ...now, ...changes }))]
}

/** Moves the stored tests of a new definition to the agent that was created from it. */
export function moveStoredTests(parentKey: string, from: string, to: string): void {
  try {
    const text = localStorage.getItem(placeOf(parentKey, from))
    if (text === null) return
    localStorage.setItem(placeOf(parentKey, to), text)
    localStorage.removeItem(placeOf(parentKey, from))
  } catch {
    // The browser forbids storage, so nothing is stored.
  }
}
