/** What the fields of the form share: the value they show, how they change it, and what is wrong with which. */
import { createContext, useContext } from 'react'
import { type Path, valueAt } from '../paths.ts'
import { describeProblem, type Problem } from './use-check.ts'
import type { Draft } from './use-draft.ts'

interface FormState {
  readonly draft: Pick<Draft, 'value' | 'change' | 'isReadable'>
  readonly problem: Problem | null
}

const FormContext = createContext<FormState | undefined>(undefined)
export const FormProvider = FormContext.Provider

export interface Field {
  readonly value: unknown
  /** The value when it is a text, else nothing. */
  readonly text: string
  readonly error: string | undefined
  readonly isDisabled: boolean
  set(value: unknown): void
}

export function useField(path: Path): Field {
  const form = useContext(FormContext)
  if (form === undefined) throw new Error('a field stands outside of its form')
  const { draft, problem } = form
  const value = valueAt(draft.value, path)
  return {
    value,
    text: typeof value === 'string' ? value : '',
    error: problem !== null && problem.path === renderPath(path) ? describeProblem(problem) : undefined,
    isDisabled: !draft.isReadable,
    set: (next) => draft.change(path, next),
  }
}

/** As the server names places: `tools[0].name`. */
export function renderPath(path: Path): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return text === '' ? key : `${text}.${key}`
  }, '')
}
