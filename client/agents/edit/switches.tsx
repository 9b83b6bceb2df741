/** Provides switches for permissions, and for mappings that turn a feature on. */
import { Switch } from '@mantine/core'
import type { Path } from '../object-paths.ts'
import { useField } from './fields.tsx'

interface SwitchProps {
  readonly path: Path
  readonly label: string
  readonly about?: string
}

interface FieldSwitchProps extends SwitchProps {
  readonly isOn: (value: unknown) => boolean
  /** The values that the field gets when the switch is on and off; undefined removes the field. */
  readonly values: readonly [on: unknown, off: unknown]
}

/** Edits a field that has one value while the switch is on, and another one while it is off. */
function FieldSwitch({ path, label, about, isOn, values: [on, off] }: FieldSwitchProps) {
  const { value, error, isDisabled, attributes, set } = useField(path)
  return (
    <Switch
      {...attributes}
      label={label}
      description={about}
      checked={isOn(value)}
      error={error}
      disabled={isDisabled}
      onChange={({ currentTarget: { checked } }) => set(checked ? on : off)}
    />
  )
}

/** Edits a permission that is granted unless the definition denies it. */
export function PermissionSwitch(props: SwitchProps) {
  return <FieldSwitch {...props} isOn={(value) => value !== false} values={[undefined, false]} />
}

/** Edits an option that is off unless the definition turns it on. */
export function OptionSwitch(props: SwitchProps) {
  return <FieldSwitch {...props} isOn={(value) => value === true} values={[true, undefined]} />
}

interface PresenceSwitchProps extends SwitchProps {
  /** The mapping to write when the user turns the feature on. */
  readonly initial: Readonly<Record<string, unknown>>
}

/** Adds or removes a mapping that turns a feature on. */
export function PresenceSwitch({ initial, ...props }: PresenceSwitchProps) {
  return (
    <FieldSwitch
      {...props}
      isOn={(value) => value !== undefined && value !== null}
      values={[initial, undefined]}
    />
  )
}
