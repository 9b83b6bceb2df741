/** Shows a component whose script loads when it is needed. */
import { type ComponentType, useEffect, useState } from 'react'

interface Props<ViewProps> {
  readonly load: () => Promise<ComponentType<ViewProps>>
  readonly props: ViewProps
  /** Called if the script cannot be loaded. */
  readonly onFailure: () => void
}

export function OnDemand<ViewProps extends object>({ load, props, onFailure }: Props<ViewProps>) {
  const [View, setView] = useState<ComponentType<ViewProps>>()
  // biome-ignore lint/correctness/useExhaustiveDependencies: loads once
  useEffect(() => {
    load().then((loaded) => setView(() => loaded), onFailure)
  }, [])
  return View === undefined ? null : <View {...props} />
}
