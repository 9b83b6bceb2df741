/** Provides form fields, each bound to one path of the definition. */
import { NativeSelect, Textarea, TextInput } from '@mantine/core'
import { createContext, useContext, useState } from 'react'
import { type Path, valueAt } from '../object-paths.ts'
import { describeProblem, type Problem } from './list-problems.ts'
import type { Check, Draft } from './use-editor.ts'

interface FormState {
  readonly draft: Pick<Draft, 'value' | 'change' | 'isReadable'>
  readonly check: Pick<Check, 'problems' | 'reportField'>
}

const FormContext = createContext<FormState | undefined>(undefined)

export const FormProvider = FormContext.Provider

interface Field {
  readonly value: unknown
  /** The value, or an empty string if it is not a string. */
  readonly text: string
  readonly error: string | undefined
  readonly isDisabled: boolean
  /** Attributes of the input, so that the list of errors can focus it. */
  readonly attributes: { readonly 'data-path': string }
  /** Reports an error in typed text that is not part of the definition. */
  report(message: string | undefined): void
  set(value: unknown): void
}

export function useField(path: Path): Field {
  const form = useContext(FormContext)
  if (form === undefined) throw new Error('useField must be called inside a FormProvider')
  const { draft, check } = form
  const value = valueAt(draft.value, path)
  const rendered = renderPath(path)
  // The field of a list also shows the errors of the list's items.
  const problem = check.problems.find(
    (one) => one.path?.replace(/\[\d+\]$/, '') === rendered || one.path === rendered,
  )
  return {
    value,
    text: typeof value === 'string' ? value : '',
    error: problem === undefined ? undefined : nameItem(problem, value) + describeProblem(problem),
    isDisabled: !draft.isReadable,
    attributes: { 'data-path': rendered },
    report: (message) => check.reportField(rendered, message),
    set: (next) => draft.change(path, next),
  }
}

/** Returns a prefix with the list item that has the error, because one field shows all items of a list. */
function nameItem({ path }: Problem, list: unknown): string {
  const index = /\[(\d+)\]$/.exec(path ?? '')?.[1]
  const item: unknown = index !== undefined && Array.isArray(list) ? list[Number(index)] : undefined
  return typeof item === 'string' && item !== '' ? `${item}: ` : ''
}

/** Renders a path in the server's notation, such as `tools[0].name`. */
function renderPath(path: Path): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return text === '' ? key : `${text}.${key}`
  }, '')
}

interface FieldProps {
  readonly path: Path
  readonly label: string
  readonly about?: string
  readonly placeholder?: string
  /** Whether the definition keeps the key while the value is empty. */
  readonly isRequired?: boolean
}

export function TextField({ path, label, about, placeholder, isRequired = false }: FieldProps) {
  const { text, error, isDisabled, attributes, set } = useField(path)
  return (
    <TextInput
      {...attributes}
      label={label}
      description={about}
      placeholder={placeholder}
      withAsterisk={isRequired}
      value={text}
      error={error}
      disabled={isDisabled}
      onChange={(event) => set(orNothing(event.currentTarget.value, isRequired))}
    />
  )
}

interface NumberFieldProps extends FieldProps {
  readonly min: number
  readonly max: number
  readonly step?: number
}

/** Accepts numbers outside the limits, so that the server's check can explain the error. */
export function NumberField({ path, label, about, placeholder, min, max, step = 1 }: NumberFieldProps) {
  const { value, error, isDisabled, attributes, set } = useField(path)
  return (
    <TextInput
      {...attributes}
      type="number"
      label={label}
      description={about}
      placeholder={placeholder}
      min={min}
      max={max}
      step={step}
      value={typeof value === 'number' ? value : ''}
      error={error}
      disabled={isDisabled}
      onChange={({ currentTarget: { valueAsNumber } }) =>
        set(Number.isNaN(valueAsNumber) ? undefined : valueAsNumber)
      }
    />
  )
}

interface ChoiceFieldProps extends FieldProps {
  /** The default is first; selecting it removes the key from the definition. */
  readonly choices: readonly { readonly value: string; readonly label: string }[]
}

export function ChoiceField({ path, label, about, choices }: ChoiceFieldProps) {
  const { text, error, isDisabled, attributes, set } = useField(path)
  const [standard] = choices
  const isKnown = text === '' || choices.some(({ value }) => value === text)
  return (
    <NativeSelect
      {...attributes}
      label={label}
      description={about}
      data={isKnown ? [...choices] : [...choices, { value: text, label: text }]}
      value={text === '' ? standard?.value : text}
      error={error}
      disabled={isDisabled}
      onChange={({ currentTarget: { value } }) => set(value === standard?.value ? undefined : value)}
    />
  )
}

interface LongTextFieldProps extends FieldProps {
  readonly minRows?: number
}

export function LongTextField({
  path,
  label,
  about,
  placeholder,
  isRequired = false,
  minRows = 2,
}: LongTextFieldProps) {
  const { text, error, isDisabled, attributes, set } = useField(path)
  return (
    <Textarea
      {...attributes}
      label={label}
      description={about}
      placeholder={placeholder}
      withAsterisk={isRequired}
      autosize
      minRows={minRows}
      maxRows={18}
      value={text}
      error={error}
      disabled={isDisabled}
      onChange={(event) => set(orNothing(event.currentTarget.value, isRequired))}
    />
  )
}

/** Edits a list of strings, one per line. */
export function LinesField({ path, label, about, placeholder }: FieldProps) {
  const { value, error, isDisabled, attributes, set } = useField(path)
  const lines = Array.isArray(value) ? value.map(String) : []
  const [typed, setTyped] = useState(lines.join('\n'))
  const isCurrent = toLines(typed).join('\n') === lines.join('\n')
  return (
    <Textarea
      {...attributes}
      label={label}
      description={about}
      placeholder={placeholder}
      autosize
      minRows={2}
      maxRows={10}
      value={isCurrent ? typed : lines.join('\n')}
      error={error}
      disabled={isDisabled}
      onChange={(event) => {
        setTyped(event.currentTarget.value)
        const next = toLines(event.currentTarget.value)
        set(next.length === 0 ? undefined : next)
      }}
    />
  )
}

/** Skips empty lines, which the user may be about to fill. */
function toLines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

function orNothing(text: string, isRequired: boolean): string | undefined {
  return text === '' && !isRequired ? undefined : text
}
