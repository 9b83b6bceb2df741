/** Provides switches for permissions, and for mappings that turn a feature on. */
import { Switch } from '@mantine/core'
import type { Path } from '../object-paths.ts'
import { useField } from './fields.tsx'

interface SwitchProps {
  readonly path: Path
  readonly label: string
  readonly about?: string
}

/** Edits a permission that is granted unless the definition denies it. */
export function PermissionSwitch({ path, label, about }: SwitchProps) {
  const { value, error, isDisabled, attributes, set } = useField(path)
  return (
    <Switch
      {...attributes}
      label={label}
      description={about}
      checked={value !== false}
      error={error}
      disabled={isDisabled}
      onChange={({ currentTarget: { checked } }) => set(checked ? undefined : false)}
    />
  )
}

/** Edits an option that is off unless the definition turns it on. */
export function OptionSwitch({ path, label, about }: SwitchProps) {
  const { value, error, isDisabled, attributes, set } = useField(path)
  return (
    <Switch
      {...attributes}
      label={label}
      description={about}
      checked={value === true}
      error={error}
      disabled={isDisabled}
      onChange={({ currentTarget: { checked } }) => set(checked ? true : undefined)}
    />
  )
}

interface PresenceSwitchProps extends SwitchProps {
  /** The mapping to write when the user turns the feature on. */
  readonly initial: Readonly<Record<string, unknown>>
}

/** Adds or removes a mapping that turns a feature on. */
export function PresenceSwitch({ path, label, about, initial }: PresenceSwitchProps) {
  const { value, error, isDisabled, attributes, set } = useField(path)
  return (
    <Switch
      {...attributes}
      label={label}
      description={about}
      checked={value !== undefined && value !== null}
      error={error}
      disabled={isDisabled}
      onChange={({ currentTarget: { checked } }) => set(checked ? initial : undefined)}
    />
  )
}
