/** Fields of the form: each shows one place of the definition, and changes that place alone. */
import { Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import type { Path } from '../paths.ts'
import { useField } from './form-context.ts'

interface FieldProps {
  readonly path: Path
  readonly label: string
  readonly about?: string
  readonly placeholder?: string
  /** Stays in the text when it is empty. */
  readonly isRequired?: boolean
}

export function TextField({ path, label, about, placeholder, isRequired = false }: FieldProps) {
  const { text, error, isDisabled, set } = useField(path)
  return (
    <TextInput
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
  const { text, error, isDisabled, set } = useField(path)
  return (
    <Textarea
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

/** A list of texts, one a line. */
export function LinesField({ path, label, about, placeholder }: FieldProps) {
  const { value, error, isDisabled, set } = useField(path)
  const lines = Array.isArray(value) ? value.map(String) : []
  const [typed, setTyped] = useState(lines.join('\n'))
  const isCurrent = toLines(typed).join('\n') === lines.join('\n')
  return (
    <Textarea
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

/** Empty lines are on their way to be filled. */
function toLines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

function orNothing(text: string, isRequired: boolean): string | undefined {
  return text === '' && !isRequired ? undefined : text
}
